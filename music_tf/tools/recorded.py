"""What a run directory tells about its run, read without touching it or loading TensorFlow."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf import recipes
from music_tf.config.fields import Field, fields_of
from music_tf.config.stored import (
    CONFIG_NAME,
    StoredRun,
    read_run,
    stored_env_id,
)
from music_tf.errors import UsageError
from music_tf.storage.metrics import CSV_NAME, METRICS, PATHS_TAG
from music_tf.storage.origin import taken_before
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.storage.run_lock import refuse_if_in_use
from music_tf.storage.state_folder import labels
from music_tf.tools.events import read_pictures
from music_tf.tools.grouping import Run, as_run, columns_of
from music_tf.tools.page import is_number

MEDIA_TYPES = {
    ".mp4": "video/mp4",
    ".gif": "image/gif",
    ".png": "image/png",
}
OURS, RANDOM = "ours", "random"
BEHAVIOUR = {name: meaning for name, meaning in METRICS.items() if name.startswith("eval/")}
WAYS = {
    f"skill/d{axis}_m": f"metres along {axis} from the object's first to its last position, mean"
    for axis in "xyz"
}
"""What is added to the metrics of each skill."""
_LARGEST_JSON = 20_000_000
_PICTURES = 3


class Measured(NamedTuple):
    """How our policy and simple ones behaved on the same episodes."""

    policies: dict[str, Mapping[str, Any]]
    """Metrics by policy, `OURS` among them."""
    epoch: float
    """When ours was measured; -1 where that is not known."""


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
    before: Mapping[str, float]
    """What the runs had taken that it started from, by column; `curves` counts it."""
    films: tuple[Path, ...]
    in_use: bool
    """Whether a job holds the directory."""
    has_checkpoint: bool
    """Whether there is something to play and to evaluate."""
    notes: tuple[str, ...]
    """What could not be read, for the reader of the page."""

    @property
    def label(self) -> str:
        """What run this is, in a few words."""
        return self.curves.name

    @property
    def state(self) -> str:
        """How far the run has come, in words."""
        done, wanted = self.epochs, self.stored.config.epochs
        if self.in_use:
            return f"still going, {done} of {wanted} epochs"
        if self.summary.get("epochs") == done:
            return f"finished, {done} epochs"
        return f"not finished, {done} of {wanted} epochs"

    @property
    def epochs(self) -> int:
        """How many are over."""
        return int(self.last("time/epoch") or 0)

    def last(self, metric: str) -> float | None:
        """Returns the newest value of a metric, None where there is none."""
        newest = self._newest(metric)
        return None if newest is None else newest[1]

    def taken(self, metric: str) -> float:
        """Returns how many steps or seconds this run has taken itself."""
        newest = self.last(metric)
        return 0.0 if newest is None else newest - self.before.get(metric, 0.0)

    def evaluated(self) -> Measured:
        """Returns what `evaluation.json` says, by `music-tf evaluate`."""
        checkpoint = self.evaluation.get("checkpoint")
        epoch = checkpoint.get("epoch") if isinstance(checkpoint, dict) else None
        return _measured(self.evaluation.get("policies"), epoch)

    def measured(self) -> Measured:
        """Returns what `evaluation.json` says, or `summary.json` if training ended after it."""
        trained = _measured(self.summary.get("evaluation"), self.summary.get("epochs"))
        found = [one for one in (self.evaluated(), trained) if one.policies]
        return max(found, key=lambda one: one.epoch, default=trained)

    def behaviour(self) -> Mapping[str, Any]:
        """Returns our policy's newest metrics: measured, or of a later epoch of training."""
        policies, epoch = self.measured()
        newest = {name: self._newest(name) for name in BEHAVIOUR}
        later = {name: at[1] for name, at in newest.items() if at is not None and at[0] > epoch}
        return later or policies.get(OURS, {})

    def skills(self) -> dict[str, Mapping[str, Any]]:
        """Returns metrics and `WAYS` of each skill that was evaluated, and of the random policy.

        Nothing without an evaluation of several skills.
        """
        rows = self.evaluation.get("skills")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        found = _mappings((f"skill {row.get('skill')}", _with_way(row)) for row in rows)
        random = self.evaluated().policies.get(RANDOM)
        return found | {RANDOM: random} if found and random else found

    def control(self) -> dict[str, Mapping[str, Any]]:
        """Returns the measures of `evaluate --full` by policy, none without it."""
        return _policies(self.evaluation.get("control"))

    def changed(self) -> list[tuple[Field, Field]]:
        """Returns the settings that differ from the recipe's, each with the recipe's own."""
        config = self.stored.config
        default = recipes.resolve(self.stored.recipe, self.stored.preset, config.env_id)
        usual = {
            field.name: field
            for name, term in config.rewards.items()
            for field in fields_of(type(term)(), f"{name}.")
        }
        usual |= {field.name: field for field in fields_of(default)}
        pairs = [(own, usual[own.name]) for own in fields_of(config)]
        return [(own, other) for own, other in pairs if own.value != other.value]

    def paths(self) -> dict[int, bytes]:
        """Returns pictures of the object's paths by environment steps: first, middle and last."""
        pictures = sorted(read_pictures(self.path, PATHS_TAG).items())
        shown = np.unique(np.linspace(0, len(pictures) - 1, _PICTURES).round().astype(int))
        earlier = round(self.before.get("time/env_steps", 0.0))
        return {pictures[n][0] + earlier: pictures[n][1] for n in shown} if pictures else {}

    def _newest(self, metric: str) -> tuple[float, float] | None:
        """Returns the last epoch that has a metric, and its value; None where there is none."""
        values = self.curves.columns.get(metric, np.zeros(0))
        epochs = self.curves.columns.get("time/epoch", np.zeros(values.size))
        known = np.flatnonzero(np.isfinite(values))
        return (float(epochs[known[-1]]), float(values[known[-1]])) if known.size else None


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
    before: Mapping[str, float] = {}
    try:
        before = taken_before(stored.init_from, path)
        columns = columns_of(path, before) if (path / CSV_NAME).exists() else {}
    except UsageError as error:
        notes.append(str(error))
    config = stored.config
    name = f"{stored.recipe} on {config.env_id}, seed {config.seed}"
    return Recorded(
        path,
        stored,
        _read_json(path / CONFIG_NAME, notes),
        _read_json(path / SUMMARY_NAME, notes),
        _read_json(path / EVALUATION_NAME, notes),
        as_run(path, name, stored, columns)._replace(folder=str(path)),
        before,
        _films(path / "videos"),
        _in_use(path),
        _has_checkpoint(path / "checkpoints"),
        tuple(notes),
    )


def _measured(policies: Any, epoch: Any) -> Measured:
    return Measured(_policies(policies), float(epoch) if is_number(epoch) else -1.0)


def _policies(found: Any) -> dict[str, Mapping[str, Any]]:
    return _mappings(found.items()) if isinstance(found, dict) else {}


def _with_way(row: Mapping[str, Any]) -> Any:
    """Returns the metrics of a skill with its mean way, where it has one."""
    metrics, way = row.get("metrics"), row.get("shift_m")
    if not isinstance(metrics, dict) or not isinstance(way, list) or len(way) != len(WAYS):
        return metrics
    return metrics | dict(zip(WAYS, way, strict=True))


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
    return tuple(
        path for path in found if path.suffix.lower() in MEDIA_TYPES and os.path.isfile(path)
    )


def _has_checkpoint(directory: Path) -> bool:
    try:
        return bool(labels(path.name for path in directory.iterdir()))
    except OSError:
        return False


def _in_use(path: Path) -> bool:
    try:
        refuse_if_in_use(path)
    except UsageError:
        return True
    return False
