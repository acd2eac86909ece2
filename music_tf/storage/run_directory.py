"""Run directories: creates and opens them, and writes the files of a run.

ROOT/ENV/RECIPE/seedN-TIME holds `config.json`, logs, checkpoints, videos and tables of a run, and
belongs to one job at a time. ROOT/latest is a link to the newest run.
"""

import contextlib
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_tf.errors import EnvironmentFault, MusicError, Stopped, UsageError
from music_tf.files import read_json, remove_drafts, replace_file
from music_tf.process.launcher import END_VARIABLE, NOTES
from music_tf.process.notices import PACKAGE, SCREEN, keep_notices
from music_tf.reading.stored import (
    CONFIG_NAME,
    LARGEST_CONFIG,
    LATEST,
    read_record,
    refuse_changes,
    runs_root,
)
from music_tf.storage.lock import LOCK_NAME, RunLock, refuse_if_in_use
from music_tf.storage.logs import LogFile, RateLimitedWarning, Terminal, log_path
from music_tf.storage.provenance import provenance
from music_tf.storage.run_paths import TRIALS, behind_link, folder_name

if TYPE_CHECKING:
    from music_tf.distributed import Communicator
    from music_tf.reading.command import TrainCommand

SUMMARY_NAME = "summary.json"
EVALUATION_NAME = "evaluation.json"
_FOLDERS = ("checkpoints", "videos", "logs")
_ROOM_FOR_TASKS = LARGEST_CONFIG - 1_000_000
_LOGGER = logging.getLogger(__name__)


def new_directory(command: "TrainCommand") -> Path:
    parent = _parent(command)
    name = f"seed{command.config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(1, 1000):
        directory = parent / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise EnvironmentFault(f"{directory}: cannot be created ({error.strerror})") from error
        return directory.absolute()
    raise EnvironmentFault(f"{parent}: cannot find a free name for this run")


def prepare_directory(command: "TrainCommand") -> Path:
    """Returns the directory of a run, and creates it if necessary."""
    directory = command.run_dir
    if directory is None:
        return new_directory(command)
    try:
        if not command.resume:
            refuse_if_taken(directory)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"{directory}: cannot be created or read ({error.strerror})"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise EnvironmentFault(f"{directory}: cannot be written")
    return behind_link(directory).absolute()  # the user's code may change the working directory


def missing_folders(command: "TrainCommand") -> list[Path]:
    """Folders that a run would create, innermost first, for `remove_empty`."""
    place = command.run_dir or _parent(command)
    return [folder for folder in (place, *place.parents) if not os.path.lexists(folder)]


def remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def link_latest(directory: Path, root: Path | None = None) -> None:
    """Points ROOT/latest at a run in the root that is no trial; ignores faults of the disk."""
    root = (root or runs_root()).resolve()
    target = directory.resolve()
    if root not in target.parents or root / TRIALS in target.parents:
        return
    draft = root / f".{LATEST}-{os.getpid()}"
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
        draft.symlink_to(target.relative_to(root), target_is_directory=True)
        draft.replace(root / LATEST)
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)


def _parent(command: "TrainCommand") -> Path:
    recipe = command.recipe.replace(":", ".")  # a colon of module:function separates paths
    return runs_root() / folder_name(command.config.env_id) / recipe


# --- what a run keeps in its directory --------------------------------------------------------


class RunDirectory:
    """A run directory in use by this job; `open_run` makes one."""

    def __init__(
        self,
        path: Path,
        comm: "Communicator",
        lock: RunLock | None,
        resumed: Mapping[str, Any] | None = None,
    ) -> None:
        """Starts this rank's log; the root holds the lock, and warns on the terminal as well."""
        self.path = path
        self._resumed = resumed
        self.checkpoints = path / "checkpoints"
        self.log = log_path(path, comm.rank)
        self.disk_warning = RateLimitedWarning()
        self._lock = lock
        self._is_root = comm.is_root
        self._handlers: list[logging.Handler] = []
        keep_notices()
        PACKAGE.setLevel(logging.INFO)
        PACKAGE.removeHandler(SCREEN)
        if comm.is_root:
            self._attach(Terminal(logging.WARNING))
        try:
            file = LogFile(self.log, self.disk_warning)
        except OSError as error:
            self.disk_warning("log", error, self.log)
        else:
            self._attach(file)

    def write_summary(self, values: Mapping[str, Any]) -> None:
        if not self._is_root:
            return
        try:
            replace_file(self.path / SUMMARY_NAME, _encode(values))
        except OSError as error:
            _LOGGER.warning("summary not written: %s", error)

    def summed_up(self, epochs: int) -> bool:
        """Whether its summary is that of the end of so many epochs."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return bool(read_json(self.path / SUMMARY_NAME, LARGEST_CONFIG)["epochs"] == epochs)
        return False

    def keep_tasks(self, tasks: Mapping[str, Any]) -> None:
        if self._is_root:
            write_json(
                self.path / CONFIG_NAME, {**read_record(self.path), "tasks": tasks}, self.path
            )

    def keep_record(self) -> None:
        """Writes what a resumed run now is, on the root; a refused resume changes nothing."""
        if self._resumed is not None:
            tasks = read_record(self.path).get("tasks")
            drawn = {} if tasks is None else {"tasks": tasks}
            write_json(self.path / CONFIG_NAME, {**self._resumed, **drawn}, self.path)

    def write_evidence(self, arrays: Mapping[str, Any]) -> None:
        """Writes the arrays of a numerical fault beside this rank's log, if there are any."""
        if not arrays:
            return
        import numpy as np  # noqa: PLC0415 - a refusal needs no numpy

        path = self.log.with_suffix(".bad_numbers.npz")
        try:
            np.savez(path, allow_pickle=False, **arrays)
        except OSError as error:
            _LOGGER.warning("%s not written: %s", path, error)

    def close(self) -> None:
        """Ends this rank's log and releases the directory; may be called again."""
        while self._handlers:
            handler = self._handlers.pop()
            PACKAGE.removeHandler(handler)
            with contextlib.suppress(OSError):
                handler.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Closes the directory of a new run that was refused, and empties it for `remove_empty`."""
        self.close()
        if not self._is_root:
            return
        shutil.rmtree(self.path / "logs", ignore_errors=True)
        with contextlib.suppress(OSError):
            (self.path / CONFIG_NAME).unlink()
            for folder in _FOLDERS[:2]:
                (self.path / folder).rmdir()

    def _attach(self, handler: logging.Handler) -> None:
        PACKAGE.addHandler(handler)
        self._handlers.append(handler)


def open_run(
    path: Path, record: Mapping[str, Any], resume: bool, comm: "Communicator"
) -> RunDirectory:
    """Creates the directory of a new run, or opens that of a run to resume; a collective call."""
    held: list[tuple[RunLock, Mapping[str, Any]]] = []  # of the root alone

    def prepare() -> None:
        try:
            held.append(_prepare(path, {**record, **provenance(comm, record)}, resume))
        except OSError as error:
            raise EnvironmentFault(f"{path}: cannot be used: {error}") from error

    comm.from_root(prepare)
    lock, kept = held[0] if held else (None, None)
    return RunDirectory(path, comm, lock, kept if resume else None)


def _prepare(path: Path, record: dict[str, Any], resume: bool) -> tuple[RunLock, Mapping[str, Any]]:
    """Checks everything before writing anything, then again once the lock is held."""
    # Returns lock and record of the run; the record of a new run is written.

    def checked() -> dict[str, Any]:
        if resume:
            return _resumed(path, record)
        refuse_if_taken(path)
        return record

    if path.is_dir():
        refuse_if_in_use(path)
    checked()
    path.mkdir(parents=True, exist_ok=True)
    lock = RunLock(path)
    try:
        for name in ("*.json", "*.csv"):
            remove_drafts(path, name)
        for notes in path.glob(f"{NOTES}*.end"):  # of a launcher that was killed
            if notes.name != Path(os.environ.get(END_VARIABLE, "")).name:
                notes.unlink(missing_ok=True)
        for name in _FOLDERS:
            (path / name).mkdir(exist_ok=True)
        kept = checked()
        if not resume:
            replace_file(path / CONFIG_NAME, _encode(kept))
    except BaseException:
        lock.release()
        raise
    return lock, kept


def refuse_if_taken(path: Path) -> None:
    """Checks that a directory is new, or was left by an interrupted start."""
    if os.path.exists(path) and not path.is_dir():
        raise UsageError(f"--run-dir: expected a directory, {path} is a file")
    if os.path.exists(path / CONFIG_NAME):
        raise UsageError(
            f"--run-dir: {path} already holds a run\n"
            "add --resume to continue it, or choose another directory"
        )
    for entry in path.iterdir() if os.path.isdir(path) else ():
        left_behind = entry.name.startswith((LOCK_NAME, CONFIG_NAME, NOTES))
        if entry.is_dir():
            left_behind = entry.name in _FOLDERS and not any(entry.iterdir())
        if not left_behind:
            raise UsageError(f"{path}: expected a new or empty directory, found other files")


def _resumed(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a resumed run after checking that it is the same run."""
    from music_tf.storage.checkpoint import MANIFEST, epoch_of, labels  # noqa: PLC0415 - numpy

    if not (path / CONFIG_NAME).exists():
        raise UsageError(
            f"{path}: expected a run to resume, found no {CONFIG_NAME}\n"
            "leave out --resume to start a new run there"
        )
    if (path / MANIFEST).exists():
        raise UsageError(
            f"{path}: expected a run to resume, found a folder of weights\n"
            "a new run starts from it with --init-from"
        )
    stored = read_record(path, "config")
    refuse_changes(stored, record)
    folder = path / "checkpoints"
    checkpoints = labels(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    epochs = (checkpoints and epoch_of(checkpoints[-1])) or 0
    wanted = record["config"].get("epochs")
    if isinstance(wanted, int) and wanted < epochs:
        raise UsageError(
            f"--epochs: expected at least the {epochs} that the run in {path} has, got {wanted}\n"
            "the number counts all of them, also those before --resume"
        )
    resumes = stored.get("resumes") or []
    now = {name: value for name, value in record.items() if name not in {"config", "recipe"}}
    return {**stored, "config": record["config"], "resumes": [*resumes, now][-20:]}


def ended_at_once(path: Path, again: str) -> MusicError:
    """Returns the fault of a run that ended without a save; the command `again` resumes it."""
    if any(path.glob("checkpoints/epoch_*")):
        return Stopped(f"ended at once; to resume from the last checkpoint:\n{again}")
    begun = (path / CONFIG_NAME).exists()
    cure = f"to begin again:\n{again}" if begun else "start it again"
    return EnvironmentFault(f"ended at once, before anything was saved; {cure}")


def write_json(path: Path, values: Mapping[str, Any], shown: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, _encode(values))
    except OSError as error:
        raise EnvironmentFault(f"{shown}: cannot be written ({error.strerror})") from error


def _encode(values: Mapping[str, Any]) -> bytes:
    """Returns a JSON document, in which null stands for numbers that are not finite."""
    return (json.dumps(_with_null(values), indent=1, allow_nan=False) + "\n").encode()


def _with_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_null(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_too_many(tasks: Mapping[str, Sequence[Any]]) -> None:
    """Refuses tasks (see `keep_tasks`; equal on all ranks) for which `config.json` has no room."""
    size, count = len(_encode({"tasks": tasks})), sum(map(len, tasks.values()))
    if size > _ROOM_FOR_TASKS:
        raise UsageError(
            f"tasks.train, tasks.test: expected at most {count * _ROOM_FOR_TASKS // size} tasks of "
            f"this environment, which {CONFIG_NAME} has room for, got {count}"
        )
