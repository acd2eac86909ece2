"""Finds the runs and agents that a user names."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from music_tf.config.names import suggestion, without_module
from music_tf.errors import UsageError
from music_tf.files import REPLACED
from music_tf.reading.stored import CONFIG_NAME, LATEST, named_run, runs_root

AGENTS = Path(__file__).resolve().parents[1] / "weights"
"""Agents of the package: a folder for each, with weights, settings and `agent.json`."""
TRIALS = "tune"
"""Folder in the root with the runs of `music-tf tune`."""


def folder_name(env_id: str) -> str:
    return without_module(env_id).replace("/", "_")


def find_run(text: str) -> Path:
    """Returns the run directory of a path or name; `latest` is the newest in the root."""
    directory = named_run(text)
    if directory is None and text:
        directory = named_run(f"{Path(text)}{REPLACED}")
    if directory is not None:
        return behind_link(directory)
    hint = f"the newest run under {runs_root()} is called {LATEST}"
    if text == LATEST:
        hint = f"there is none under {runs_root()} yet; music-tf train starts one"
    raise UsageError(
        f"RUN: expected a run directory with a {CONFIG_NAME}, got {text[:200]!r}\n{hint}"
    )


def find_agent(text: str) -> Path:
    try:
        return find_run(text)
    except UsageError as error:
        names = agents()
        if text in names and not os.path.lexists(text):
            return AGENTS / text
        shadowed = f"\nthe path {text} wins over the agent of that name" if text in names else ""
        raise UsageError(
            f"{error}\nagents that come with the package: {', '.join(names)}"
            + (shadowed or suggestion(text, names))
        ) from error


def find_source(text: str) -> Path:
    """Returns the folder of weights of a run, a folder of weights, or an agent."""
    from music_tf.storage.checkpoint import MANIFEST, weights_of  # noqa: PLC0415 - numpy

    if os.path.isfile(Path(text) / MANIFEST):
        return Path(text)
    try:
        return weights_of(find_agent(text))
    except UsageError as error:
        raise UsageError(str(error).replace("RUN: ", "--init-from: ", 1)) from error


def agents() -> dict[str, dict[str, Any]]:
    """Agents of the package by name, with `agent.json`: description, command, evaluation."""
    return {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(AGENTS.glob("*/agent.json"))
    }


def name_of(run: Path) -> str:
    """Returns what a user calls a run: the name of an agent of the package, else the path."""
    return run.name if comes_with_package(run) else str(run)


def comes_with_package(run: Path) -> bool:
    """Whether a directory is that of an agent of the package, which is never written to."""
    return run.resolve().parent == AGENTS


def file_about(run: Path, name: str, here: Path = Path()) -> Path:
    """Returns the path of a file about a run: in it, or of an agent in the root of runs."""
    if comes_with_package(run):
        return here / runs_root() / f"{run.name}_{name}"
    return run / name


def film_path(run: Path) -> Path:
    """Returns the default path of a film: in the run, or for an agent in the root of runs."""
    if comes_with_package(run):
        return runs_root().absolute() / f"{run.name}.mp4"
    return run / "videos" / "policy.mp4"


def place_of(name: str, runs: Sequence[Path]) -> Path:
    """Default path of a file about runs: in the run if there is one, else in the root."""
    only = runs[0].absolute() if len(runs) == 1 else runs_root().absolute()
    folder = only if os.path.isdir(only) else only.parent  # False where a name is too long
    inside = os.path.isfile(folder / CONFIG_NAME)
    return (folder if inside else runs_root().absolute()) / name


def behind_link(directory: Path) -> Path:
    """Returns the target of a link such as `latest`, which may change during the run."""
    return directory.resolve() if directory.is_symlink() else directory
