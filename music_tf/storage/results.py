"""Stored results: a copy of a run's `metrics.csv` under comments with its origin.

# music-tf train ddpg_her --env-id FetchPush-v4 --seed 0     the command
# then music-tf train --run-dir ... --resume                 the command of a manual resume, if any
# commit 0123abc, tensorflow 2.21.0, 2 cores of ...          software and machine
# {"wall_s": 512.3, "final_100_episodes": {...}}             details, if any
epoch,time/epoch,...
"""

import array
import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf.errors import UsageError
from music_tf.files import parse_json, read_at_most
from music_tf.storage.metrics import CSV_NAME, LARGEST_TABLE, MOST_ROWS
from music_tf.types import Floats

FINAL = "final_100_episodes"
WORLDS = "worlds"
BEFORE = "before"
LOSSES = "losses"
ADAPTATION = "adaptation"
COUNTED = {
    "time/env_steps": "env_steps",
    "time/episodes": "episodes",
    "time/episodes_cut": "episodes_cut",
    "time/elapsed_s": "elapsed_s",
    "time/wall_s": "wall_s",
}
"""Columns to which `in_all` adds the source of a warm start, with their names in a checkpoint."""
_LARGEST_NUMBER = 1e300
_RESUMED = "then "
_NAME = re.compile(r"(?:(.+)_)?seed(\d+)")


class NoEpochError(UsageError):
    """A file holds no epoch: its run has just begun, or it is no table of a run."""


class StoredResult(NamedTuple):
    """A `metrics.csv`, or a stored copy of one."""

    command: str
    """The command line; empty for a `metrics.csv` itself."""
    made_with: str
    """Commit, versions and machine."""
    details: Mapping[str, Any]
    """`wall_s`; `final_100_episodes` by policy and metric; `before`, steps and seconds of the runs
    that a warm start goes back to, by column; `control`, `coverage` and `skills` of
    `evaluate --full`; for a run that adapts to tasks `adaptation` instead, by policy and metric;
    `worlds`, the rows of `worlds.csv` of a changing world; `evaluations`, the text of
    `evaluations.csv`."""
    columns: Mapping[str, Floats]
    """Metrics by name, a value per epoch; nan if missing."""

    def in_all(self, name: str) -> Floats:
        """Returns a column plus the steps or seconds of the runs that a warm start goes back to."""
        earlier: float = self.details.get(BEFORE, {}).get(name, 0.0)
        return self.columns[name] + earlier

    def counted_in_all(self) -> dict[str, Floats]:
        """Returns all columns, those of `COUNTED` as `in_all` does."""
        counted = {name: self.in_all(name) for name in COUNTED if name in self.columns}
        return {**self.columns, **counted}


def header(command: str, made_with: str, details: Mapping[str, Any] | None = None) -> str:
    """Returns the comment lines of a stored result."""
    lines = [command, made_with, *([json.dumps(details)] if details else [])]
    return "".join(f"# {line}\n" for line in lines)


def group_and_seed(path: Path) -> tuple[str, int | None]:
    """Group and seed of GROUP_seedN.csv or GROUP/seedN.csv; of any other file its folder."""
    name = _NAME.fullmatch(path.stem)
    if name is None:
        return path.resolve().parent.name, None
    return name.group(1) or path.resolve().parent.name, int(name.group(2))


def read_result(path: Path) -> StoredResult:
    """Reads a stored result or a `metrics.csv`; an incomplete last line is left out."""
    values = array.array("d")
    try:
        content = read_at_most(path, LARGEST_TABLE)
        if content.count(b"\n") > MOST_ROWS:
            raise UsageError(f"{path}: more than {MOST_ROWS} rows")
        comments = re.findall(r"^#\s*(.*?)\s*$", content.decode(), re.MULTILINE)
        text = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
        rows = csv.reader(line for line in text if line.endswith(("\r", "\n")) and line[0] != "#")
        titles = next(rows, [])
        for row in rows:
            if len(row) == len(titles):
                values.extend(float(cell) if cell else math.nan for cell in row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"RUN: expected a run directory or a copy of its {CSV_NAME}, cannot read {path} "
            f"({getattr(error, 'strerror', None) or error})"
        ) from error
    except ValueError as error:
        raise UsageError(f"{path}: expected numbers ({error})"[:200]) from error
    if not values or "time/env_steps" not in titles:
        raise NoEpochError(f"{path}: holds no epoch of a run yet")
    try:
        details = [parse_json(comment) for comment in comments if comment.startswith("{")]
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON in its comment ({error})"[:200]) from error
    above = details[0] if details else {}
    if not (are_numbers(above.get(BEFORE, {})) and isinstance(above.get(FINAL, {}), dict)):
        raise UsageError(f"{path}: expected objects under {BEFORE!r} and {FINAL!r} in its comment")
    texts = [comment for comment in comments if not comment.startswith(("{", _RESUMED))]
    return StoredResult(
        command=texts[0] if texts else "",
        made_with=texts[1] if len(texts) > 1 else "",
        details=above,
        columns=dict(zip(titles, np.array(values).reshape(-1, len(titles)).T, strict=True)),
    )


def read_metrics(directory: Path, epoch: int) -> dict[str, float]:
    """Returns the metrics of an epoch in a run's `metrics.csv` by column, without blanks."""
    try:
        columns = read_result(directory / CSV_NAME).columns
    except UsageError:
        return {}
    rows = np.flatnonzero(columns.get("time/epoch", np.array([])) == epoch)[:1]
    cells = {name: float(values[row]) for name, values in columns.items() for row in rows}
    return {name: value for name, value in cells.items() if math.isfinite(value)}


def scores(folder: Path, metrics: Sequence[str]) -> list[tuple[int, float]]:
    """Returns epoch and value of each evaluation of a run so far."""
    try:
        columns = read_result(folder / CSV_NAME).columns
    except UsageError:  # no row yet
        return []
    for name in metrics:
        values = columns.get(name, np.zeros(0))
        if np.isfinite(values).any():
            pairs = enumerate(values, 1)
            return [(epoch, float(score)) for epoch, score in pairs if math.isfinite(score)]
    return []


def are_numbers(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(number, int | float) and abs(number) < _LARGEST_NUMBER
        for number in value.values()
    )
