"""A lock by which a directory belongs to one job at a time."""

import contextlib
import fcntl
import json
import logging
import os
import socket
import time
from pathlib import Path
from typing import Any

from music_tf.errors import UsageError
from music_tf.files import as_object, read_json, replace_file

LOCK_NAME = "lock.json"
_LARGEST_LOCK = 10_000
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.02
"""Tries and pause in seconds; a reader of the run holds the lock only for a moment."""
_LOGGER = logging.getLogger(__name__)


class RunLock(contextlib.AbstractContextManager["RunLock"]):
    """Keeps other jobs out of a directory: by the kernel's lock here, by the file across hosts."""

    def __init__(self, directory: Path) -> None:
        """Takes the lock, also if its holder is dead or was requeued by Slurm."""
        self._path = directory / LOCK_NAME
        self._mine = {"pid": os.getpid(), "host": socket.gethostname(), **_slurm()}
        self._folder = os.open(directory, os.O_RDONLY)
        try:
            free = _flock(self._folder, fcntl.LOCK_EX, _LOCK_TRIES)
            if free is None:
                _LOGGER.warning(
                    "%s: no flock here, %s alone keeps others out", directory, LOCK_NAME
                )
            _refuse_other_holder(directory, free)
            replace_file(self._path, json.dumps(self._mine).encode())
        except BaseException:
            os.close(self._folder)
            raise

    def __exit__(self, *fault: object) -> None:
        self.release()

    def release(self) -> None:
        with contextlib.suppress(OSError):
            if _holder(self._path) == self._mine:
                self._path.unlink()
        os.close(self._folder)


def refuse_if_in_use(directory: Path) -> None:
    """Checks for another job's lock without writing anything."""
    free: bool | None = None
    with contextlib.suppress(OSError):
        folder = os.open(directory, os.O_RDONLY)
        try:
            free = _flock(folder, fcntl.LOCK_SH)
        finally:
            os.close(folder)
    _refuse_other_holder(directory, free)


def _flock(folder: int, kind: int, tries: int = 1) -> bool | None:
    """Locks an open folder; returns whether it was free, None if the file system has no locks."""
    for _ in range(tries):
        try:
            fcntl.flock(folder, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE * (tries > 1))
        except OSError:
            return None
        else:
            return True
    return False


def _refuse_other_holder(directory: Path, free: bool | None) -> None:
    """Refuses a directory unless the holder in its lock file has certainly ended."""
    holder = _holder(directory / LOCK_NAME)
    gone = holder is None
    if holder:
        job, restarts = _slurm().values()
        queued_again = holder.get("slurm_restarts") != restarts
        gone = job is not None and holder.get("slurm_job") == job and queued_again
        if holder.get("host") == socket.gethostname():
            gone = gone or (_is_dead(holder.get("pid")) if free is None else free)
    if free is False or not gone:
        who = "another job"
        if holder:
            who = f"process {holder.get('pid')} on host {holder.get('host')}"
        raise UsageError(
            f"{directory}: in use by {who}\n"
            "choose another --run-dir, or stop that job first; if it no longer exists, remove "
            f"{directory / LOCK_NAME}"
        )


def _holder(path: Path) -> dict[str, Any] | None:
    """Returns the content of a lock file, None without one, empty for a damaged one."""
    try:
        return as_object(read_json(path, _LARGEST_LOCK))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}


def _is_dead(pid: Any) -> bool:
    if type(pid) is int and pid > 0:
        try:
            os.kill(pid, 0)
        except (OSError, OverflowError) as error:
            return isinstance(error, ProcessLookupError)
    return False


def _slurm() -> dict[str, str | None]:
    """Returns the id of this Slurm job, and how often Slurm has requeued it."""
    return {
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "slurm_restarts": os.environ.get("SLURM_RESTART_COUNT", "0"),
    }
