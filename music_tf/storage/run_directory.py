"""The directory of a run: its configuration, logs, checkpoints, videos and summary."""

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.config.stored import CONFIG_NAME, MAY_CHANGE_ON_RESUME, flatten
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.checkpoint import labels
from music_tf.storage.files import read_at_most, remove_drafts, replace_file
from music_tf.storage.logs import Seldom, attach_log, detach_log
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.provenance import provenance
from music_tf.storage.run_lock import LOCK_NAME, RunLock, refuse_if_in_use

SUMMARY_NAME = "summary.json"
EVALUATION_NAME = "evaluation.json"
_FOLDERS_LEFT_EMPTY = ("checkpoints", "videos")
"""What a new run makes beside its logs."""
_LARGEST_CONFIG = 1_000_000
_KEPT_RESUMES = 20
_SHOWN = 5
_LOGGER = logging.getLogger(__name__)


class RunDirectory:
    """A run directory in use by this job; `open_run` makes one."""

    def __init__(self, path: Path, comm: Communicator, lock: RunLock | None) -> None:
        """Starts this rank's log.

        Args:
            path: A directory that `open_run` has prepared.
            comm: The ranks of the job.
            lock: What keeps other jobs out; held by the root.
        """
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._lock = lock
        self._is_root = comm.is_root
        self.log = log_path(path, comm.rank)
        self.complain = Seldom()
        self._handlers = attach_log(self.log, comm.is_root, self.complain)

    def write_summary(self, values: Mapping[str, Any]) -> None:
        """Writes `summary.json` on the root; a disk that fails costs a warning."""
        if not self._is_root:
            return
        try:
            replace_file(self.path / SUMMARY_NAME, _encode(values))
        except OSError as error:
            _LOGGER.warning("summary not written: %s", error)

    def write_evidence(self, arrays: Mapping[str, Any]) -> None:
        """Writes what numbers went bad on beside this rank's log; a full disk costs a warning.

        Nothing is written of a fault that knows nothing: what an earlier one left stays.
        """
        if not arrays:
            return
        path = self.log.with_suffix(".bad_numbers.npz")
        try:
            np.savez(path, allow_pickle=False, **arrays)
        except OSError as error:
            _LOGGER.warning("%s not written: %s", path, error)

    def close(self) -> None:
        """Ends this rank's log and gives the directory back; may be called again."""
        detach_log(self._handlers)
        self._handlers = []
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Closes the directory of a new run that was refused, and removes what it has begun."""
        self.close()
        if not self._is_root:
            return
        shutil.rmtree(self.path / "logs", ignore_errors=True)
        with contextlib.suppress(OSError):
            (self.path / CONFIG_NAME).unlink()
            for folder in (*_FOLDERS_LEFT_EMPTY, ""):
                (self.path / folder).rmdir()


def log_path(path: Path, rank: int) -> Path:
    """Returns where a rank of the run in a directory keeps its log."""
    return path / "logs" / f"rank_{rank:04d}.log"


def open_run(
    path: Path, record: Mapping[str, Any], resume: bool, comm: Communicator
) -> RunDirectory:
    """Creates the directory of a new run, or opens that of a run to resume.

    Args:
        path: The run directory, the same on every rank and visible to all of them.
        record: What `config.json` shall say: `recipe`, `preset`, `arguments` and the resolved
            `config`, all JSON values. Versions, ranks, host and commit are added.
        resume: Whether to continue the run that lies there.
        comm: All ranks; the root does the work, and every rank raises what it finds.

    Returns:
        The directory, locked until `close`.

    Raises:
        UsageError: Another job uses the directory, it holds something else, there is nothing
            to resume, or the run there is another one; nothing was touched.
        EnvironmentFault: It cannot be read or written, or its `config.json` is damaged.
    """
    lock: RunLock | None = None
    fault: tuple[str, str] | None = None
    if comm.is_root:
        try:
            lock = _prepare(path, {**record, **provenance(comm, record)}, resume)
        except (UsageError, EnvironmentFault) as error:
            fault = (type(error).__name__, str(error))
        except OSError as error:
            fault = (EnvironmentFault.__name__, f"{path}: cannot be used: {error}")
    fault = comm.share(fault)
    if fault is not None:
        kind = UsageError if fault[0] == UsageError.__name__ else EnvironmentFault
        raise kind(fault[1])
    return RunDirectory(path, comm, lock)


def _prepare(path: Path, record: dict[str, Any], resume: bool) -> RunLock:
    """Checks everything before touching anything, then again once the lock is held."""
    check: Callable[[], dict[str, Any]] = (
        (lambda: _resumed(path, record)) if resume else (lambda: _new(path, record))
    )
    if path.is_dir():
        refuse_if_in_use(path)
    check()
    path.mkdir(parents=True, exist_ok=True)
    lock = RunLock(path)
    try:
        remove_drafts(path, (CONFIG_NAME, CSV_NAME, SUMMARY_NAME, LOCK_NAME))
        for name in (*_FOLDERS_LEFT_EMPTY, "logs"):
            (path / name).mkdir(exist_ok=True)
        replace_file(path / CONFIG_NAME, _encode(check()))
    except BaseException:
        lock.release()
        raise
    return lock


def _new(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a new run after checking that its directory is free."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: expected a directory, found a file")
    if (path / CONFIG_NAME).exists():
        recipe = _read_record(path).get("recipe")
        raise UsageError(
            f"{path}: holds a run of {recipe} already\n"
            "choose another --run-dir, or continue that run with --resume"
        )
    if path.is_dir() and any(_foreign(entry) for entry in path.iterdir()):
        raise UsageError(f"{path}: expected a new or empty directory, found other files")
    return record


def _foreign(entry: Path) -> bool:
    """Tells whether an entry is more than what an interrupted start leaves behind."""
    if entry.is_dir():
        return entry.name not in {*_FOLDERS_LEFT_EMPTY, "logs"} or any(entry.iterdir())
    return entry.name != LOCK_NAME and not entry.name.startswith((LOCK_NAME, CONFIG_NAME))


def _resumed(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a continued run after checking that it is the same run."""
    if not (path / CONFIG_NAME).exists():
        raise UsageError(
            f"{path}: expected a run to resume, found no {CONFIG_NAME}\n"
            "leave out --resume to start a new run there"
        )
    stored = _read_record(path)
    before, after = _settings(stored), _settings(record)
    # a setting that the stored run lacks is newer than it, and has its default
    changed = [
        name
        for name, value in before.items()
        if value != after.get(name) and name not in MAY_CHANGE_ON_RESUME
    ]
    if changed:
        lines = [
            f"{name}: the run has {json.dumps(before.get(name))}, "
            f"got {json.dumps(after.get(name))}"[:200]
            for name in changed[:_SHOWN]
        ]
        allowed = ", ".join(MAY_CHANGE_ON_RESUME)
        raise UsageError(
            f"{path}: --resume continues a run exactly, only {allowed} may change\n"
            + "\n".join(lines)
        )
    _refuse_fewer_epochs(path, after.get("epochs"))
    resumes = stored.get("resumes", [])
    now = {name: value for name, value in record.items() if name not in {"config", "recipe"}}
    return {**stored, "config": record.get("config"), "resumes": [*resumes, now][-_KEPT_RESUMES:]}


def _refuse_fewer_epochs(path: Path, asked: Any) -> None:
    """Refuses a number of epochs that was meant to be added to those that are done."""
    folder = path / "checkpoints"
    found = labels(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    done = int(found[-1].split("_")[1]) if found else 0
    if isinstance(asked, int) and asked < done:
        raise UsageError(
            f"--epochs: expected at least the {done} that the run in {path} has, got {asked}\n"
            "the number counts all of them, also those before --resume"
        )


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what makes a run the run it is, by dotted names."""
    return {
        "recipe": record.get("recipe"),
        "preset": record.get("preset"),
        **flatten(record.get("config") or {}),
    }


def _read_record(path: Path) -> dict[str, Any]:
    file = path / CONFIG_NAME
    try:
        record = json.loads(read_at_most(file, _LARGEST_CONFIG))
        _encode({"record": record})  # numbers such as 1e999 can be read, but not written again
    except (ValueError, RecursionError) as error:
        raise EnvironmentFault(
            f"{file}: damaged ({str(error)[:120]})\nput back a copy, or use another --run-dir"
        ) from error
    if not isinstance(record, dict) or not isinstance(record.get("config"), dict):
        raise EnvironmentFault(f"{file}: damaged (expected a JSON object with a config)")
    if not isinstance(record.get("resumes", []), list):
        raise EnvironmentFault(f"{file}: damaged (expected a list under 'resumes')")
    return record


def _encode(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(values), indent=1, allow_nan=False) + "\n").encode()
