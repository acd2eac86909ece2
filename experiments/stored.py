"""Results of the stored runs of a study, by condition, task and seed."""

import ast
import csv
import io
import itertools
import math
import re
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.names import suggestion
from music_tf.errors import UsageError
from music_tf.storage.results import (
    ADAPTATION,
    BEFORE,
    FINAL,
    WORLDS,
    StoredResult,
    read_result,
)
from music_tf.storage.run_paths import folder_name
from music_tf.tools.study import Condition, Study, Task, load_study
from music_tf.types import Floats

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
STUDIES = ROOT / "experiments" / "studies"
FIRST, MINUTES, HELD = "level/steps", "level/minutes", "level/held"
"""Thousand steps and minutes until `Task.level` is met; share of later evaluations that meet it."""
WINDOW = "level/window"
"""Thousand steps until the mean success rate of four evaluations between epochs meets it."""
ACCURACY = "skill/accuracy_heldout"
KWARGS, SKILLS = "--env.kwargs", "--env.skills"
"""Options that change what a simple policy does or earns on a task."""
_GROUPS = (FINAL, "coverage", ADAPTATION, "zero_shot", "control")
"""Groups of measurements of several policies at the end of a run."""
_SHARES = re.compile(
    r".*(_rate|/accuracy_heldout)|level/share|adapt/success_\w+|zero_shot/(ever|end(_with_\w+)?)|"
    r"zero_shot/follow\w*_lost|"
    r"control/(rollout_)?coverage|control/skill_variance"
)


class Group(NamedTuple):
    """The stored runs of a condition on a task."""

    study: str
    condition: Condition
    task: Task
    files: Mapping[int, Path]
    """By seed."""
    runs: Mapping[int, StoredResult]
    measured: Sequence[Mapping[str, float]]
    """All measures at the end of each run."""

    @property
    def name(self) -> str:
        """Prefix of its files."""
        return f"{self.condition.name}_{folder_name(self.task.env_id)}"

    @property
    def seeds(self) -> Sequence[int]:
        """Seeds that the study asks for."""
        return self.condition.seeds or self.task.seeds

    @property
    def place(self) -> str:
        """Short name of the task."""
        return re.sub(r"^.*[:/]|-v\d+$", "", self.task.env_id)

    @property
    def label(self) -> str:
        """Title of the condition."""
        return self.condition.label or self.condition.name

    @property
    def played(self) -> dict[str, str]:
        """What the condition gives for `KWARGS` and `SKILLS`."""
        words = itertools.pairwise(shlex.split(self.condition.arguments))
        return {option: value for option, value in words if option in (KWARGS, SKILLS)}

    def final(self, metric: str) -> list[float | None]:
        """Returns a measure at the end of each run, else the last value in its metrics."""
        return [
            float(evaluated(run, metric)[-1])
            if metric not in measures and evaluated(run, metric).size
            else measures.get(metric)
            for run, measures in zip(self.runs.values(), self.measured, strict=True)
        ]

    def beside(self, policy: str) -> list[dict[str, float]]:
        """Returns the measures of a simple policy at the end of each run."""
        return [measured_of(run, policy) for run in self.runs.values()]


def is_share(metric: str) -> bool:
    """Whether a measure lies in [0, 1]."""
    return _SHARES.fullmatch(metric) is not None


def planned(name: str) -> Study:
    """Returns the study of a name."""
    file = STUDIES / f"{name}.py"
    if not file.is_file():
        names = [path.stem for path in STUDIES.glob("*.py")]
        raise UsageError(f"there is no study {name!r}{suggestion(name, names)}")
    return load_study(file)


def about(name: str) -> str:
    """Returns what the docstring of a study says under its question."""
    source = (STUDIES / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[2]


def groups_of(name: str, results: Path) -> list[Group]:
    """Returns the groups of a study after those of its `beside`, task by task.

    A condition without a run has a group without runs.
    """
    study = planned(name)
    own_groups = [*_groups(name, study, results)]
    own_files = {path for group in own_groups for path in group.files.values()}
    strays = sorted({*(results / name).glob("*.csv")} - own_files)
    if strays:
        raise UsageError(f"{strays[0]}: is no run of experiments/studies/{name}.py")
    beside = [
        group
        for other, _, condition in (row.partition("/") for row in study.beside)
        for group in _groups(other, planned(other), results)
        if group.condition.name == condition
    ]
    return [
        group
        for task in study.tasks
        for group in (*beside, *own_groups)
        if group.task.env_id == task.env_id
    ]


def _groups(name: str, study: Study, results: Path) -> Iterator[Group]:
    for task in study.tasks:
        for condition in study.conditions:
            if task.env_id in (condition.tasks or [task.env_id]):
                group = Group(name, condition, task, {}, {}, [])
                paths = {s: results / name / f"{group.name}_seed{s}.csv" for s in group.seeds}
                files = {seed: path for seed, path in paths.items() if path.exists()}
                runs = {seed: read_result(path) for seed, path in files.items()}
                measured = [measures_of(run, task) for run in runs.values()]
                yield group._replace(files=files, runs=runs, measured=measured)


def measured_of(run: StoredResult, policy: str) -> dict[str, float]:
    """Returns the measures of a policy at the end of a run."""
    measures: dict[str, float] = {}
    for group in _GROUPS:
        measures |= _finite(run.details.get(group, {}).get(policy, {}))
    return measures


def _finite(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Returns metrics without those that were not finite, which are null in a file."""
    return {name: value for name, value in metrics.items() if value is not None}


def measures_of(run: StoredResult, task: Task) -> dict[str, float]:
    """Returns all measures at the end of a run.

    They include the time to the level of its task, its cost, the metrics of its skills, and their
    changes in a changing world.
    """
    last = evaluated(run, ACCURACY)[-1:]
    return {
        **(dict.fromkeys([ACCURACY], float(last[0])) if last.size else {}),
        **measured_of(run, "ours"),
        **_level(run, task),
        **_window(run, task),
        **_spent(run),
        **_of_skills(run),
        **_in_worlds(run),
    }


def policies_beside(runs: Sequence[StoredResult]) -> list[str]:
    """Returns the simple policies that were measured with some run."""
    names = (name for run in runs for group in _GROUPS for name in run.details.get(group, {}))
    return [name for name in dict.fromkeys(names) if name != "ours"]


def evaluated(run: StoredResult, metric: str) -> Floats:
    """Returns the values of a metric, without epochs that lack it."""
    values = run.columns.get(metric, np.array([]))
    return values[np.isfinite(values)]


def followed(run: StoredResult, metric: str, steps: Sequence[float]) -> list[float | None]:
    """Returns a metric after total numbers of steps; None if no epoch ended there."""
    counts = run.in_all("time/env_steps")
    rows = [np.flatnonzero(counts == count) for count in steps]
    values = run.columns.get(metric, np.full(len(counts), np.nan))
    return [float(values[row[0]]) if row.size else None for row in rows]


def meets(columns: Mapping[str, Floats], level: Mapping[str, float]) -> Floats:
    """Returns for each epoch whether it meets all thresholds of a level, 1 or 0.

    It is nan if a metric is blank, so that the epoch was not evaluated.
    """
    blank = np.full(len(columns["time/elapsed_s"]), np.nan)
    values = np.array([columns.get(name, blank) for name in level])  # [metrics, epochs]
    limits = np.array(list(level.values()))[:, None]
    met = np.all(values >= limits, axis=0)
    return np.where(np.any(np.isnan(values), axis=0), np.nan, met)


def _level(run: StoredResult, task: Task) -> dict[str, float]:
    """Returns when a run first met the level of its task, and how often it met it.

    Steps and minutes are infinite if it never did. `HELD` is missing if no evaluation is later.
    """
    met = meets(run.columns, task.level) if task.level else np.array([np.nan])
    if np.all(np.isnan(met)):
        return {}
    measures = {"level/share": float(np.nanmean(met))}
    if not np.any(met == 1.0):
        return measures | {FIRST: math.inf, MINUTES: math.inf}
    first = int(np.nanargmax(met))
    later = met[first + 1 :]
    if np.any(np.isfinite(later)):
        measures[HELD] = float(np.nanmean(later))
    steps = float(run.in_all("time/env_steps")[first]) / 1e3
    return measures | {FIRST: steps, MINUTES: float(seconds_of(run)[first]) / 60.0}


def _window(run: StoredResult, task: Task) -> dict[str, float]:
    """Returns when evaluations between epochs met the success rate of a task; infinite if never."""
    text, level = run.details.get("evaluations"), task.level.get("eval/success_rate")
    if text is None or level is None:
        return {}
    before = run.details.get(BEFORE, {}).get("time/env_steps", 0.0)
    met = (
        (before + float(row["time/env_steps"])) / 1e3
        for row in csv.DictReader(io.StringIO(text))
        if float(row["eval/success_rate_of_4"] or -math.inf) >= level
    )
    return {WINDOW: next(met, math.inf)}


def seconds_of(run: StoredResult) -> Floats:
    """Returns the seconds until each row, since the launch, with those of a warm start's source.

    Older results without the time of the launch have those of training and evaluation.
    """
    trained, launched = "time/elapsed_s", "time/wall_s"
    if launched not in run.columns:
        return run.in_all(trained)
    before = run.details.get(BEFORE, {})
    earlier: float = before.get(launched, before.get(trained, 0.0))
    return run.columns[launched] + earlier


def _spent(run: StoredResult) -> dict[str, float]:
    """Returns total thousand steps and minutes, and steps per minute without evaluations."""
    steps = run.columns["time/env_steps"]
    if "time/fps" in run.columns:
        training = float(np.sum(np.diff(steps, prepend=0.0) / run.columns["time/fps"]))
    else:  # the clock of `compare_baselines.py` leaves evaluations out
        training = float(run.columns["time/elapsed_s"][-1])
    return {
        "spent/thousand_steps": float(run.in_all("time/env_steps")[-1]) / 1e3,
        "spent/minutes": float(seconds_of(run)[-1]) / 60.0,
        "spent/steps_a_minute": float(steps[-1]) / training * 60.0,
    }


def _of_skills(run: StoredResult) -> dict[str, float]:
    """Returns mean, least and most over skills of the metrics that all of them have."""
    each = [_finite(skill["metrics"]) for skill in run.details.get("skills", ())]
    names = [name for name in (each[0] if each else {}) if all(name in metrics for metrics in each)]
    return {
        f"skills/{kind}/{name}": float(of([metrics[name] for metrics in each]))
        for name in names
        for kind, of in (("mean", statistics.fmean), ("least", min), ("most", max))
    }


def _in_worlds(run: StoredResult) -> dict[str, float]:
    """Returns measures of skills in a changing world, at the end of a run.

    `worlds/furthest`: largest first coordinate of an end, in the last stage, of skills learned in
    it. `worlds/moved`: mean distance, in the first stage, of the ends of its skills from their ends
    before the change.
    """
    rows: Sequence[Mapping[str, Any]] = run.details.get(WORLDS, ())
    epochs = [row["epoch"] for row in rows]
    first = {row["skill"] for row in rows if row["epoch"] == min(epochs) and "skill" in row}
    last = [row for row in rows if row["epoch"] == max(epochs)]
    new = [
        row["end_0"]
        for row in last
        if row["world"] == row["learned_in"] == row["next_stage"] and "end_0" in row
    ]
    moved = [
        row["moved"]
        for row in last
        if row["world"] == 0.0 and row.get("skill") in first and "moved" in row
        if min(epochs) < max(epochs)
    ]
    return {
        **({"worlds/furthest": max(new)} if new else {}),
        **({"worlds/moved": statistics.fmean(moved)} if moved else {}),
    }
