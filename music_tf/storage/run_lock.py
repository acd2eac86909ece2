"""A run directory belongs to one job at a time."""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from music_tf.errors import UsageError
from music_tf.storage.files import read_at_most, replace_file

LOCK_NAME = "lock.json"
_LARGEST_LOCK = 10_000
_START_TIME_FIELD = 19


class RunLock:
    """Held by the root of the job that uses a run directory."""

    def __init__(self, directory: Path) -> None:
        """Takes the lock, also one that a dead process on this host left behind.

        So is that of the same Slurm job before it was queued again: its node may be gone.

        Raises:
            UsageError: Another job uses the directory.
            OSError: The lock cannot be written.
        """
        self._path = directory / LOCK_NAME
        self._mine = _process(os.getpid())
        with _exclusively(directory):
            refuse_if_in_use(directory)
            replace_file(self._path, json.dumps(self._mine).encode())

    def release(self) -> None:
        """Gives the directory back, unless another job holds the lock by now."""
        with contextlib.suppress(OSError):
            if _read(self._path) == self._mine:
                self._path.unlink()


def refuse_if_in_use(directory: Path) -> None:
    """Checks for another job's lock without touching anything.

    Raises:
        UsageError: Another job uses the directory; the text names its host and process.
    """
    holder = _read(directory / LOCK_NAME)
    if holder is None or _is_dead(holder):
        return
    raise UsageError(
        f"{directory}: in use by process {holder.get('pid')} on host {holder.get('host')}\n"
        "choose another --run-dir, or stop that job first; if it no longer exists, remove "
        f"{directory / LOCK_NAME}"
    )


def _read(path: Path) -> dict[str, Any] | None:
    """Returns what the lock says, None without a lock, and nothing known of a damaged one."""
    try:
        content = json.loads(read_at_most(path, _LARGEST_LOCK))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _process(pid: int) -> dict[str, Any]:
    return {
        "pid": pid,
        "host": socket.gethostname(),
        "boot": _boot(),
        "started": _start_time(pid),
        **_slurm(),
    }


def _slurm() -> dict[str, str | None]:
    """Returns which Slurm job this is, and how often Slurm has queued it again."""
    return {
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "slurm_restarts": os.environ.get("SLURM_RESTART_COUNT", "0"),
    }


def _is_dead(holder: dict[str, Any]) -> bool:
    """Tells whether the holder certainly runs no more; clocks play no part in it."""
    if _is_earlier_start(holder):
        return True
    pid = holder.get("pid")
    if type(pid) is not int or pid < 1 or holder.get("host") != socket.gethostname():
        return False
    if holder.get("boot") != _boot():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return holder.get("started") != _start_time(pid)


def _is_earlier_start(holder: dict[str, Any]) -> bool:
    """Tells whether the holder is this Slurm job before it was queued again."""
    mine = _slurm()
    same_job = mine["slurm_job"] is not None and holder.get("slurm_job") == mine["slurm_job"]
    return same_job and holder.get("slurm_restarts") != mine["slurm_restarts"]


def _boot() -> str | None:
    """Returns an id that changes when the machine starts anew."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Returns when a process started, in ticks since the machine did; None if unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[_START_TIME_FIELD]
    except (OSError, IndexError):
        return None


@contextlib.contextmanager
def _exclusively(directory: Path) -> Iterator[None]:
    """Keeps two jobs on this host from taking over the same stale lock."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
