"""What a run directory tells about its run, read without touching it or loading TensorFlow."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf import recipes
from music_tf.config.fields import Field, fields_of
from music_tf.config.stored import (
    FILE_NAME,
    StoredRun,
    read_run,
    stored_env_id,
)
from music_tf.errors import UsageError
from music_tf.training.metrics import CSV_NAME, PATHS_TAG
from music_tf.training.results import read_result
from music_tf.training.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.training.run_lock import refuse_if_in_use
from music_tf.viewing.events import read_pictures
from music_tf.viewing.grouping import Run, settings_of

MEDIA_TYPES = {
    ".mp4": "video/mp4",
    ".gif": "image/gif",
    ".png": "image/png",
}
_LARGEST_JSON = 20_000_000
_PICTURES = 3


class Recorded(NamedTuple):
    """One run directory."""

    path: Path
    stored: StoredRun
    record: Mapping[str, Any]
    """All of `config.json`: versions, commit, host and ranks too."""
    summary: Mapping[str, Any]
    """`summary.json`; empty while there is none."""
    evaluation: Mapping[str, Any]
    """`evaluation.json`; empty while there is none."""
    curves: Run
    """Columns of `metrics.csv`; none before the first epoch is over."""
    films: tuple[Path, ...]
    in_use: bool
    """Whether a job holds the directory."""
    notes: tuple[str, ...]
    """What could not be read, for the reader of the page."""

    @property
    def label(self) -> str:
        """What run this is, in a few words."""
        return self.curves.name

    @property
    def state(self) -> str:
        """How far the run has come, in words."""
        done, wanted = int(self.last("time/epoch") or 0), self.stored.config.epochs
        if self.in_use:
            return f"still going, {done} of {wanted} epochs"
        if self.summary.get("epochs") == done:
            return f"finished, {done} epochs"
        return f"not finished, {done} of {wanted} epochs"

    def last(self, metric: str) -> float | None:
        """Returns the newest value of a metric, None where there is none."""
        values = self.curves.columns.get(metric, np.zeros(0))
        known = values[np.isfinite(values)]
        return float(known[-1]) if known.size else None

    def policies(self) -> dict[str, Mapping[str, Any]]:
        """Returns metrics of ours and of simple policies: the evaluation's, or the training's."""
        measured = self.evaluation.get("policies") or self.summary.get("evaluation")
        return _mappings(measured.items()) if isinstance(measured, dict) else {}

    def skills(self) -> dict[str, Mapping[str, Any]]:
        """Returns metrics of each skill by name, none without an evaluation of several skills."""
        rows = self.evaluation.get("skills")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return _mappings((f"skill {row.get('skill')}", row.get("metrics")) for row in rows)

    def changed(self) -> list[tuple[Field, Field]]:
        """Returns the settings that differ from the recipe's, each with the recipe's own."""
        default = recipes.resolve(self.stored.recipe, self.stored.preset, self.stored.config.env_id)
        pairs = zip(fields_of(self.stored.config), fields_of(default), strict=True)
        return [(own, usual) for own, usual in pairs if own.value != usual.value]

    def paths(self) -> dict[int, bytes]:
        """Returns pictures of the object's paths by environment steps: first, middle and last."""
        pictures = sorted(read_pictures(self.path, PATHS_TAG).items())
        shown = np.unique(np.linspace(0, len(pictures) - 1, _PICTURES).round().astype(int))
        return dict(pictures[number] for number in shown) if pictures else {}


def read_recorded(path: Path) -> Recorded:
    """Reads a run directory, also of a run still going.

    Args:
        path: The run directory.

    Raises:
        UsageError: It holds no run, or its configuration is damaged.
    """
    stored = read_run(path, stored_env_id(path))  # a module that it names is not imported here
    notes: list[str] = []
    columns: Mapping[str, Any] = {}
    try:
        columns = read_result(path / CSV_NAME).columns if (path / CSV_NAME).exists() else {}
    except UsageError as error:
        notes.append(str(error))
    config = stored.config
    name = f"{stored.recipe} on {config.env_id}, seed {config.seed}"
    group = f"{stored.recipe}, {config.env_id.rpartition('/')[2]}"
    return Recorded(
        path,
        stored,
        _read_json(path / FILE_NAME, notes),
        _read_json(path / SUMMARY_NAME, notes),
        _read_json(path / EVALUATION_NAME, notes),
        Run(name, group, columns, settings_of(stored)),
        _films(path / "videos"),
        _in_use(path),
        tuple(notes),
    )


def _mappings(items: Iterable[tuple[Any, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(name): values for name, values in items if isinstance(values, dict)}


def _read_json(path: Path, notes: list[str]) -> dict[str, Any]:
    """Returns a JSON object, or an empty one and a note where the file is damaged."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST_JSON))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.name} cannot be read: {str(error)[:120]}")
        return {}
    if not isinstance(content, dict):
        notes.append(f"{path.name} cannot be read: expected a JSON object")
        return {}
    return content


def _films(directory: Path) -> tuple[Path, ...]:
    """Returns the films and pictures of a run, without drafts."""
    found = sorted(directory.glob("[!.]*")) if directory.is_dir() else []
    return tuple(path for path in found if path.suffix.lower() in MEDIA_TYPES and path.is_file())


def _in_use(path: Path) -> bool:
    try:
        refuse_if_in_use(path)
    except UsageError:
        return True
    return False
