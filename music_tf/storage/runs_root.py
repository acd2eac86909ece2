"""Where runs lie: the root of all runs, a new run's directory, and the link to the latest."""

import contextlib
import os
import time
from pathlib import Path

from music_tf.config.command import TrainCommand
from music_tf.config.stored import CONFIG_NAME
from music_tf.errors import EnvironmentFault, UsageError

LATEST = "latest"
_MOST_TRIES = 1000


def runs_root() -> Path:
    """Returns the directory that holds all runs without a directory of their own."""
    return Path(os.environ.get("MUSIC_TF_RUNS") or "runs")


def folder_name(env_id: str) -> str:
    """Returns an environment's id as the name of a folder."""
    return env_id.rpartition(":")[2].replace("/", "_")


def new_directory(command: TrainCommand) -> Path:
    """Creates and returns ROOT/ENV/RECIPE/seedN-TIME, a directory that no other run has.

    Raises:
        EnvironmentFault: It cannot be created.
    """
    parent = runs_root() / folder_name(command.config.env_id) / command.recipe
    name = f"seed{command.config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(1, _MOST_TRIES):
        directory = parent / (name if attempt == 1 else f"{name}-{attempt}")
        with contextlib.suppress(FileExistsError):
            _create(directory, exist_ok=False)
            return directory
    raise EnvironmentFault(f"{parent}: cannot find a free name for this run")


def prepare_directory(command: TrainCommand) -> Path:
    """Returns the directory of a run, which exists from now on.

    Raises:
        UsageError: It already holds a run, and that is not to be continued.
        EnvironmentFault: It cannot be created or written.
    """
    directory = command.run_dir
    if directory is None:
        directory = new_directory(command)
    elif not command.resume and os.path.exists(directory / CONFIG_NAME):
        raise UsageError(
            f"--run-dir: {directory} already holds a run\n"
            "add --resume to continue it, or choose another directory"
        )
    try:
        _create(directory, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--run-dir: expected a directory, {directory} is a file") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise EnvironmentFault(f"{directory}: cannot be written")
    return _behind_link(directory)


def link_latest(directory: Path) -> None:
    """Points ROOT/latest at a run that lies under the root; never fails."""
    root = runs_root().resolve()
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
    candidates = [Path(text), runs_root() / text] if text else []
    for directory in candidates:
        if os.path.isfile(directory / CONFIG_NAME):  # False where `is_file` raises: private folders
            return _behind_link(directory)
    hint = f"the newest run under {runs_root()} is called {LATEST}"
    if text == LATEST:
        hint = f"there is none under {runs_root()} yet; music-tf train starts one"
    raise UsageError(
        f"RUN: expected a run directory with a {CONFIG_NAME}, got {text[:200]!r}\n{hint}"
    )


def find_source(text: str) -> Path:
    """Returns where the weights of a run, or of a folder of weights, lie that the user means.

    Raises:
        UsageError: There are none.
    """
    from music_tf.storage.manifest import MANIFEST  # noqa: PLC0415 - numpy

    if os.path.isfile(Path(text) / MANIFEST):
        return Path(text)
    try:
        return find_run(text) / "checkpoints"
    except UsageError as error:
        raise UsageError(
            f"--init-from: expected a run directory with a {CONFIG_NAME} or a folder of weights "
            f"with a {MANIFEST}, got {text[:200]!r}"
        ) from error


def _behind_link(directory: Path) -> Path:
    """Returns the directory that a link such as `latest` means now: it may move during the run."""
    return directory.resolve() if directory.is_symlink() else directory


def _create(directory: Path, *, exist_ok: bool) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        raise
    except OSError as error:
        raise EnvironmentFault(f"{directory}: cannot be created ({error.strerror})") from error
