"""Run directories: where they lie, whose they are, and what a run keeps in its own.

ROOT/ENV/RECIPE/seedN-TIME holds `config.json`, logs, checkpoints, videos and tables of a run, and
belongs to one job at a time. ROOT/latest is a link to the newest.
"""

import contextlib
import datetime
import importlib.metadata
import json
import logging
import math
import os
import platform
import re
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_tf.config.names import suggestion, without_module
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import remove_drafts, replace_file
from music_tf.process.machine import available_cores
from music_tf.reading.stored import (
    CONFIG_NAME,
    LATEST,
    named_run,
    read_record,
    refuse_changes,
    runs_root,
)
from music_tf.storage.lock import LOCK_NAME, RunLock, refuse_if_in_use

if TYPE_CHECKING:
    from music_tf.distributed import Communicator
    from music_tf.reading.command import TrainCommand

AGENTS = Path(__file__).resolve().parents[1] / "weights"
"""Agents that come with the package: a folder each, of weights, settings and `agent.json`."""
SUMMARY_NAME = "summary.json"
EVALUATION_NAME = "evaluation.json"
_FOLDERS = ("checkpoints", "videos", "logs")
_MOST_TRIES = 1000
_KEPT_RESUMES = 20
_QUIET_SECONDS = 600.0
_PACKAGE = logging.getLogger("music_tf")
_PACKAGES = (
    "music_tf",
    "tensorflow",
    "keras",
    "numpy",
    "mujoco",
    "gymnasium",
    "gymnasium-robotics",
    "mpi4py",
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOGGER = logging.getLogger(__name__)


# --- where runs lie ---------------------------------------------------------------------------


def folder_name(env_id: str) -> str:
    """Returns an environment's id as the name of a folder."""
    return without_module(env_id).replace("/", "_")


def new_directory(command: "TrainCommand") -> Path:
    """Creates and returns ROOT/ENV/RECIPE/seedN-TIME, a directory that no other run has.

    Raises:
        EnvironmentFault: It cannot be created.
    """
    parent = _parent(command)
    name = f"seed{command.config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(1, _MOST_TRIES):
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
    """Returns the directory of a run, which exists from now on.

    Raises:
        UsageError: It already holds a run, and that is not to be continued.
        EnvironmentFault: It cannot be created or written.
    """
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
    return _behind_link(directory).absolute()  # code of the user's may leave this folder


def missing_folders(command: "TrainCommand") -> list[Path]:
    """Returns the folders that a run would make for itself, innermost first.

    `remove_empty` takes them away again where the run is refused.
    """
    place = command.run_dir or _parent(command)
    return [folder for folder in (place, *place.parents) if not os.path.lexists(folder)]


def remove_empty(folders: Sequence[Path]) -> None:
    """Removes folders as far as they are empty, innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def link_latest(directory: Path, root: Path | None = None) -> None:
    """Points ROOT/latest at a run that lies under the root; never fails."""
    root = (root or runs_root()).resolve()
    target = directory.resolve()
    if root not in target.parents:
        return
    draft = root / f".{LATEST}-{os.getpid()}"
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
        draft.symlink_to(target.relative_to(root), target_is_directory=True)
        draft.replace(root / LATEST)
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)


def find_run(text: str) -> Path:
    """Returns the run directory that the user means; `latest` is the newest under the root.

    Raises:
        UsageError: There is no run.
    """
    directory = named_run(text)
    if directory is not None:
        return _behind_link(directory)
    hint = f"the newest run under {runs_root()} is called {LATEST}"
    if text == LATEST:
        hint = f"there is none under {runs_root()} yet; music-tf train starts one"
    raise UsageError(
        f"RUN: expected a run directory with a {CONFIG_NAME}, got {text[:200]!r}\n{hint}"
    )


def find_agent(text: str) -> Path:
    """Returns the directory of what can act: a run, a folder of weights, or an agent by its name.

    Where a path and the name of an agent are the same word, the path wins.

    Raises:
        UsageError: There is none.
    """
    try:
        return find_run(text)
    except UsageError as error:
        if _means_an_agent(text):
            return AGENTS / text
        names = agents()
        shadowed = f"\nthe path {text} wins over the agent of that name" if text in names else ""
        raise UsageError(
            f"{error}\nagents that come with the package: {', '.join(names)}"
            + (shadowed or suggestion(text, names))
        ) from error


def find_source(text: str) -> Path:
    """Returns where the weights lie that the user means: of a run, of a folder, or of an agent.

    Raises:
        UsageError: There are none.
    """
    from music_tf.storage.checkpoint import MANIFEST, weights_of  # noqa: PLC0415 - numpy

    if os.path.isfile(Path(text) / MANIFEST):
        return Path(text)
    try:
        return weights_of(find_run(text))
    except UsageError as error:
        if _means_an_agent(text):
            return AGENTS / text
        raise UsageError(
            f"--init-from: expected a run directory with a {CONFIG_NAME}, a folder of weights "
            f"with a {MANIFEST}, or one of {', '.join(agents())}, got {text[:200]!r}"
            + suggestion(text, agents())
        ) from error


def agents() -> dict[str, dict[str, Any]]:
    """Returns the agents that come with the package by name, with what `agent.json` says of each.

    That is what it does, the command, seed, commit and versions that made it, and its evaluation.
    """
    return {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(AGENTS.glob("*/agent.json"))
    }


def comes_with_package(run: Path) -> bool:
    """Whether a directory is that of an agent of the package, so that nothing is written there."""
    return run.resolve().parent == AGENTS


def film_path(run: Path) -> Path:
    """Returns where a film of a run goes unless asked otherwise; of an agent, under the root."""
    if comes_with_package(run):
        return runs_root().absolute() / f"{run.name}.mp4"
    return run / "videos" / "policy.mp4"


def place_of(name: str, runs: Sequence[Path]) -> Path:
    """Returns where a file about runs goes unless asked otherwise.

    Into the run where there is one, seen from its directory or its table; else under the root.
    """
    only = runs[0].absolute() if len(runs) == 1 else runs_root().absolute()
    folder = only if os.path.isdir(only) else only.parent  # False where a name is too long
    inside = os.path.isfile(folder / CONFIG_NAME)
    return (folder if inside else runs_root().absolute()) / name


def _means_an_agent(text: str) -> bool:
    return text in agents() and not os.path.lexists(text)


def _parent(command: "TrainCommand") -> Path:
    recipe = command.recipe.replace(":", ".")  # one of the user's; a colon divides paths elsewhere
    return runs_root() / folder_name(command.config.env_id) / recipe


def _behind_link(directory: Path) -> Path:
    """Returns the directory that a link such as `latest` means now: it may move during the run."""
    return directory.resolve() if directory.is_symlink() else directory


# --- what a run keeps in its directory --------------------------------------------------------


class RunDirectory:
    """A run directory in use by this job; `open_run` makes one."""

    def __init__(self, path: Path, comm: "Communicator", lock: RunLock | None) -> None:
        """Starts this rank's log; the root holds the lock, and warns on the terminal as well."""
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.log = log_path(path, comm.rank)
        self.disk_warning = RateLimitedWarning()
        self._lock = lock
        self._is_root = comm.is_root
        self._handlers: list[logging.Handler] = []
        _PACKAGE.setLevel(logging.INFO)
        if comm.is_root:
            self._attach(_Terminal(logging.WARNING))
        try:
            file = _LogFile(self.log, self.disk_warning)
        except OSError as error:
            self.disk_warning("log", error, self.log)
        else:
            self._attach(file)

    def write_summary(self, values: Mapping[str, Any]) -> None:
        """Writes `summary.json` on the root; a disk that fails costs a warning."""
        if not self._is_root:
            return
        try:
            replace_file(self.path / SUMMARY_NAME, _encode(values))
        except OSError as error:
            _LOGGER.warning("summary not written: %s", error)

    def keep_tasks(self, tasks: Mapping[str, Any]) -> None:
        """Writes the tasks of a new run into its `config.json`, on the root.

        Raises:
            EnvironmentFault: It cannot be written.
        """
        if not self._is_root:
            return
        stored = read_record(self.path)
        try:
            replace_file(self.path / CONFIG_NAME, _encode({**stored, "tasks": tasks}))
        except OSError as error:
            raise EnvironmentFault(f"{self.path}: cannot be written: {error}") from error

    def write_evidence(self, arrays: Mapping[str, Any]) -> None:
        """Writes what numbers went bad on beside this rank's log; a full disk costs a warning.

        Nothing is written of a fault that knows nothing: what an earlier one left stays.
        """
        if not arrays:
            return
        import numpy as np  # noqa: PLC0415 - the command line refuses without it

        path = self.log.with_suffix(".bad_numbers.npz")
        try:
            np.savez(path, allow_pickle=False, **arrays)
        except OSError as error:
            _LOGGER.warning("%s not written: %s", path, error)

    def close(self) -> None:
        """Ends this rank's log and gives the directory back; may be called again."""
        while self._handlers:
            handler = self._handlers.pop()
            _PACKAGE.removeHandler(handler)
            with contextlib.suppress(OSError):
                handler.close()
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
            for folder in (*_FOLDERS[:2], ""):
                (self.path / folder).rmdir()

    def _attach(self, handler: logging.Handler) -> None:
        _PACKAGE.addHandler(handler)
        self._handlers.append(handler)


def log_path(path: Path, rank: int) -> Path:
    """Returns where a rank of the run in a directory keeps its log."""
    return path / "logs" / f"rank_{rank:04d}.log"


def open_run(
    path: Path, record: Mapping[str, Any], resume: bool, comm: "Communicator"
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
        UsageError: Another job uses the directory, it holds something else, there is nothing to
            resume, or the run there is damaged or another one; nothing was touched.
        EnvironmentFault: It cannot be read or written.
    """
    lock: RunLock | None = None
    refused = broken = None
    if comm.is_root:
        try:
            lock = _prepare(path, {**record, **provenance(comm, record)}, resume)
        except UsageError as error:
            refused = str(error)
        except OSError as error:
            broken = f"{path}: cannot be used: {error}"
    refused, broken = comm.broadcast_object((refused, broken))
    if refused is not None:
        raise UsageError(refused)
    if broken is not None:
        raise EnvironmentFault(broken)
    return RunDirectory(path, comm, lock)


def _prepare(path: Path, record: dict[str, Any], resume: bool) -> RunLock:
    """Checks everything before touching anything, then again once the lock is held."""

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
        for name in _FOLDERS:
            (path / name).mkdir(exist_ok=True)
        replace_file(path / CONFIG_NAME, _encode(checked()))
    except BaseException:
        lock.release()
        raise
    return lock


def refuse_if_taken(path: Path) -> None:
    """Checks that a new run may have a directory: it is new, or what an interrupted start left.

    Raises:
        UsageError: It holds a run or other files, or is a file itself.
    """
    if os.path.exists(path) and not path.is_dir():
        raise UsageError(f"--run-dir: expected a directory, {path} is a file")
    if os.path.exists(path / CONFIG_NAME):
        raise UsageError(
            f"--run-dir: {path} already holds a run\n"
            "add --resume to continue it, or choose another directory"
        )
    for entry in path.iterdir() if os.path.isdir(path) else ():
        left_behind = entry.name.startswith((LOCK_NAME, CONFIG_NAME))
        if entry.is_dir():
            left_behind = entry.name in _FOLDERS and not any(entry.iterdir())
        if not left_behind:
            raise UsageError(f"{path}: expected a new or empty directory, found other files")


def _resumed(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a continued run after checking that it is the same run."""
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
    found = labels(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    done, asked = (found and epoch_of(found[-1])) or 0, record["config"].get("epochs")
    if isinstance(asked, int) and asked < done:
        raise UsageError(
            f"--epochs: expected at least the {done} that the run in {path} has, got {asked}\n"
            "the number counts all of them, also those before --resume"
        )
    resumes = stored.get("resumes") or []
    now = {name: value for name, value in record.items() if name not in {"config", "recipe"}}
    return {**stored, "config": record["config"], "resumes": [*resumes, now][-_KEPT_RESUMES:]}


def _encode(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(values), indent=1, allow_nan=False) + "\n").encode()


class RateLimitedWarning:
    """Warns of a disk that fails: once in ten minutes, however many files it is about."""

    def __init__(self) -> None:
        self._quiet_until = -math.inf

    def __call__(self, what: str, error: OSError, path: Path) -> None:
        """Says that something was not written to a file, unless it was said a moment ago."""
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _QUIET_SECONDS
            _LOGGER.warning("%s not written, training goes on: %s (%s)", what, error, path)


class _LogFile(logging.FileHandler):
    """A log file; a full disk loses lines, never the run."""

    def __init__(self, path: Path, warn: RateLimitedWarning) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._warn = warn

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drops the line."""
        error = sys.exception()
        if isinstance(error, OSError):
            self._warn("log", error, Path(self.baseFilename))


class _Terminal(logging.Handler):
    """Writes to whatever `sys.stderr` is at the time, so that a progress bar can make room."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the message without a time."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{record.levelname.lower()}: {self.format(record)}\n")


# --- what a run was made with -----------------------------------------------------------------


def provenance(comm: "Communicator", record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of `config.json` that nobody types, as JSON values."""
    return {
        "versions": versions(),
        "mpi": comm.library,
        "ranks": comm.size,
        "workers": (record.get("config") or {}).get("workers"),
        "commit": commit(Path(__file__).resolve().parents[2]),
        "host": socket.gethostname(),
        "processor": processor(),
        "cores": available_cores(),
        "time": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str | None]:
    """Returns the versions of Python and of what decides about a run's numbers."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def commit(checkout: Path) -> str | None:
    """Returns the git commit that is checked out in a directory, None outside a checkout."""
    git = shared = checkout / ".git"
    try:
        if git.is_file():  # a worktree: branches lie where it was made from
            git = checkout / git.read_text().strip().removeprefix("gitdir: ")
            shared = git / (git / "commondir").read_text().strip()
        found = (git / "HEAD").read_text().strip()
        if found.startswith("ref: "):
            name = found.removeprefix("ref: ")
            if (shared / name).is_file():
                found = (shared / name).read_text().strip()
            else:
                packed = (shared / "packed-refs").read_text().splitlines()
                found = next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, ValueError):
        return None
    return found if _COMMIT.fullmatch(found) else None


def processor() -> str:
    """Returns the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
