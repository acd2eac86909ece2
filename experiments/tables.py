"""Tables and pictures from the stored results alone: `make results`.

Fills what stands in README.md and docs/*.md between

    <!-- results: NAME -->
    <!-- /results -->

where NAME is one of `TABLES`, or a study with files in experiments/results, or such a study and
`_worlds`, for what its skills do in a changing world. It draws `PICTURES` again where what they
show has changed. A study without results yet has a line that says so. `--check` only says what
differs (exit code 1).
"""

import argparse
import hashlib
import itertools
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_BUG, EXIT_DONE, UsageError
from music_tf.intrinsic.running import KEPT
from music_tf.measures.behaviour import direction
from music_tf.storage.metrics import METRICS
from music_tf.storage.results import (
    ADAPTATION,
    BEFORE,
    FINAL,
    WORLDS,
    Numbers,
    StoredResult,
    group_and_seed,
    read_result,
)
from music_tf.storage.run_directory import folder_name
from music_tf.storage.worlds import ENDS
from music_tf.tools.curves import draw_curves
from music_tf.tools.curves import load as load_curve
from music_tf.tools.study import Study, load_study

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
STUDIES = ROOT / "experiments" / "studies"
JOINTS = "broken_joints.json"
IMAGES = ROOT / "docs" / "images"
ORIGINS = IMAGES / "made_from.json"
"""What each picture was drawn from, and its own content, as digests."""

SUCCESS, MOVED = "eval/success_rate", "eval/object_moved_rate"
ACCURACY, RETURN = "skill/accuracy_heldout", "eval/return"
RUNNING = "skill/log_likelihood_running"
TITLES = {
    SUCCESS: "success",
    RETURN: "return",
    MOVED: "moved",
    "eval/object_on_support_rate": "on support",
    "eval/object_comotion_m": "co-motion (m)",
    "eval/object_lift_rate": "lifted",
    "eval/object_displacement_m": "displacement (m)",
    "eval/object_coverage": "cells",
    "reward/music_mean": "mean reward",
    "coverage/kept_rate": "kept",
    "coverage/moved_and_kept_rate": "moved and kept",
    "coverage/displacement_cells": "displacement cells",
    "coverage/direction_entropy": "directions",
    "coverage/object_cells": "cells of 10 cm",
}
"""Of columns of `metrics.csv`, and of what `evaluate --full` finds on 200 episodes."""
CONTROL = {
    "control/coverage": "coverage",
    "control/rollout_coverage": "in training",
    "control/contact_rate": "contact",
    "control/steps_to_contact": "steps to contact",
    "control/end_spread_m": "spread of ends (m)",
    "control/information": "I(dx; dy) (nats)",
    "control/information_null": "by chance",
}
"""Of what `evaluate --full` measures at the end of each run of a study."""
TOLD_APART = {
    ACCURACY: "recognised",
    MOVED: "object moved",
    "control/skill_variance": "variance of ends by skill",
    "control/skill_variance_chance": "by chance",
}
_BEHAVIOUR = tuple(name for name in TITLES if name.startswith("eval/object_"))
_OF_A_SKILL = _BEHAVIOUR[:4]
_OF_A_HAND = {
    "control/rotation_rad": "turned (rad)",
    "eval/object_displacement_m": "displacement (m)",
    MOVED: "moved",
    "eval/object_on_support_rate": "on the palm",
}
_OF_A_DISC = {
    MOVED: "moved",
    "eval/object_displacement_m": "displacement",
    "coverage/moved_and_kept_rate": "moved and kept",
    "coverage/displacement_cells": "displacement cells",
    "control/end_spread_m": "spread of ends",
}
_OF_A_TASK = {
    SUCCESS: "success",
    MOVED: "moved",
    "eval/object_on_support_rate": "on support",
    "coverage/kept_rate": "kept",
    "coverage/moved_and_kept_rate": "moved and kept",
    "coverage/displacement_cells": "displacement cells",
}
_OF_A_BLOCK = {
    MOVED: "moved",
    "eval/object_comotion_m": "co-motion (m)",
    "eval/object_on_support_rate": "on support",
    "coverage/moved_and_kept_rate": "moved and kept",
    "coverage/displacement_cells": "displacement cells",
}
_MOVES = {MOVED: 0.8}
_HAS_CONTROL = {"eval/object_on_support_rate": 0.8, "eval/object_comotion_m": 0.2}
_LIFTS = {**_HAS_CONTROL, "eval/object_lift_rate": 0.6}
_SHARES = (ACCURACY, "control/coverage", "control/rollout_coverage", "control/skill_variance")
"""Measures in [0, 1] beside the rates."""
_HALF = 0.5
_LEVELS = (0.5, 0.9)
_POLICIES = {"random": "random policy"}
COVERAGE = "coverage"
_GROUPS = (FINAL, COVERAGE, ADAPTATION, "zero_shot")
"""What was measured of several policies at the end of a run."""
_STEADY = 5
_TINY = 0.01
_ENVIRONMENT = re.compile(r"_(?:music_tf_)?([A-Za-z0-9]+)-v\d+$")
"""The end of the name of a condition on an environment."""

Source = str | Sequence[str]
"""A study, or patterns of the files of several under `experiments/results`."""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def number(value: float | None = None) -> str:
    """Returns a rate or length with two digits, three where it is small, a count with none."""
    if value is None or math.isnan(value):
        return ""
    if value >= 10.0:  # noqa: PLR2004 - no rate or length is, every count of cells is
        return f"{value:.0f}"
    return f"{value:.3f}" if 0.0 < value < _TINY else f"{value:.2f}"


def minutes(value: float | None = None) -> str:
    """Returns minutes with one digit."""
    return "" if value is None else f"{value:.1f}"


def each_seed(values: Sequence[float | None], show: Callable[[float | None], str] = number) -> str:
    """Returns the mean of the seeds that have a value, and each seed where there are several.

    A seed without a value is a dash in its place, so that the mean of some is not taken for that
    of all; the cell is blank where none has one.
    """
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not known or len(values) == 1:
        return show(*known)
    each = ", ".join(show(value) or "-" for value in values)
    return f"{show(statistics.fmean(known))} ({each})"


def difference(
    values: Sequence[float | None], others: Sequence[float | None], *, shares: bool = False
) -> str:
    """Returns the difference of two means and the half width of its 95 % interval.

    The interval is Welch's, with a variance for each side; there is none where one has a single
    seed, or where neither varies. Of shares at a bound it says nothing: `counts` stand in its
    place. Blank where a seed has no value.
    """
    sides = [np.array(list(side), np.float64) for side in (values, others)]
    ours, theirs = (side.mean() if side.size else np.nan for side in sides)
    if np.isnan(ours - theirs):
        return ""
    shown = f"{ours - theirs:+.2f}"
    degrees = np.array([side.size - 1 for side in sides])
    if not degrees.all():
        return shown
    if shares and any(map(at_a_bound, sides)):
        return f"{shown} ({counts(*sides)})"
    squares = np.array([side.var(ddof=1) / side.size for side in sides])
    if not squares.any():
        return shown
    freedom = squares.sum() ** 2 / (squares**2 / degrees).sum()
    return f"{shown} ± {stats.t.ppf(0.975, freedom) * math.sqrt(squares.sum()):.2f}"


def half_width(values: Sequence[float] | Numbers) -> float:
    """Returns half of Student's 95 % interval around a mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def at_a_bound(shares: Sequence[float] | Numbers) -> bool:
    """Whether the 95 % interval of Student's t around a mean of shares holds what no share can be.

    So it does, too, where all are 0 or all are 1: an interval of no width says that no other seed
    could differ.
    """
    mean, half = float(np.mean(shares)), half_width(shares)
    return bool(mean - half < 0.0 or mean + half > 1.0 or mean in (0.0, 1.0))


def counts(ours: Numbers, theirs: Numbers) -> str:
    """Returns on how many seeds of each side a share is at least one half.

    Where that differs, each has its exact 95 % interval (Clopper and Pearson, 1934).
    """
    found = [(int((side >= _HALF).sum()), side.size) for side in (ours, theirs)]
    alike = found[0][0] * found[1][1] == found[1][0] * found[0][1]
    return ", ".join(f"{k} of {n}" if alike else f"{k} of {n}: {exact(k, n)}" for k, n in found)


def exact(count: int, seeds: int) -> str:
    """Returns the exact 95 % interval of a share of seeds."""
    low, high = stats.binomtest(count, seeds).proportion_ci(method="exact")
    return f"{low:.2f} to {high:.2f}"


def runs_of(source: Source, results: Path) -> dict[str, list[StoredResult]]:
    """Returns stored results by condition and environment, each by seed.

    Raises:
        UsageError: There are none.
    """
    patterns = [f"{source}/*seed*.csv"] if isinstance(source, str) else source
    groups: dict[str, list[StoredResult]] = {}
    for pattern in patterns:
        files = [(*group_and_seed(path), path) for path in results.glob(pattern)]
        if not files:
            raise UsageError(f"{results / pattern}: holds no stored result")
        for group, _, path in sorted(files, key=lambda file: (file[0], file[1] or 0)):
            groups.setdefault(group, []).append(read(path))
    return groups


def label_of(group: str) -> str:
    """Returns the words for a condition on an environment."""
    return _ENVIRONMENT.sub(r" on \1", group)


def option_of(result: StoredResult, name: str, otherwise: str = "") -> str:
    """Returns what a command gives an option."""
    found = re.search(rf"--{name} (\S+)", result.command)
    return found[1] if found else otherwise


def place_of(result: StoredResult) -> str:
    """Returns on how much of a machine a command ran."""
    found = re.search(r"launch -n (\d+)", result.command)
    return "one core" if found is None else {"2": "two ranks"}.get(found[1], f"{found[1]} ranks")


def final_of(result: StoredResult, policy: str = "ours") -> Mapping[str, float]:
    """Returns what was measured of a policy at the end of a run; empty where nothing was.

    That is its last 100 episodes and its coverage, or how it adapts.
    """
    return {
        metric: value
        for group in _GROUPS
        for metric, value in result.details.get(group, {}).get(policy, {}).items()
    }


def policies_beside(result: StoredResult) -> list[str]:
    """Returns the simple policies that were measured beside a run."""
    names = (name for group in _GROUPS for name in result.details.get(group, {}))
    return [name for name in dict.fromkeys(names) if name != "ours"]


def label_beside(policy: str, env_id: str) -> str:
    """Returns the words for a simple policy on an environment."""
    return f"{_POLICIES.get(policy, policy)} on {env_id.removesuffix('-v4')}"


def at_budget(result: StoredResult) -> StoredResult:
    """Returns what a run had come to at the budget of its first command.

    Of one that was prolonged by hand, later rows do not count, nor does what was measured at its
    end.
    """
    if not result.resumed:
        return result
    epochs, allowed = (float(option_of(result, name, "inf")) for name in ("epochs", "max-minutes"))
    spent = (result.columns["time/elapsed_s"] >= 60.0 * allowed) | (
        result.columns["epoch"] >= epochs
    )
    rows = int(np.argmax(spent)) + 1 if spent.any() else len(spent)
    if rows == len(spent):
        return result
    details = {
        name: {policy: found for policy, found in value.items() if policy != "ours"}
        if name in (*_GROUPS, "control")
        else value
        for name, value in result.details.items()
    }
    columns = {name: values[:rows] for name, values in result.columns.items()}
    return result._replace(columns=columns, details=details)


def read(path: Path) -> StoredResult:
    """Returns a stored result as tables count it."""
    return at_budget(read_result(path))


def evaluated(result: StoredResult, metric: str) -> Numbers:
    """Returns the values of a metric, epochs without an evaluation left out."""
    values = result.columns.get(metric, np.array([]))
    return values[np.isfinite(values)]


def measures_of(run: StoredResult, policy: str = "ours") -> Mapping[str, float]:
    """Returns what was found at the end of a run: control, the last 100 episodes, recognition.

    And what became of skills in a changing world.
    """
    control: Mapping[str, float] = run.details.get("control", {}).get(policy, {})
    if policy != "ours":
        return {**control, **final_of(run, policy)}
    shares = evaluated(run, ACCURACY)
    last = {ACCURACY: float(shares[-1])} if shares.size else {}
    return {**control, **final_of(run), **last, **in_changing_worlds(run)}


def in_changing_worlds(run: StoredResult) -> dict[str, float]:
    """Returns what became of skills in a world that changes, at the end of a run.

    `worlds/furthest`: the largest first number of where a skill ends that was learned in the last
    stage, there; `worlds/moved`: how far skills of the first stage end there from where they ended
    before the change, on average.
    """
    rows: Sequence[Mapping[str, float]] = run.details.get(WORLDS, ())
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


def meets(columns: Mapping[str, Numbers], conditions: Mapping[str, float]) -> Numbers:
    """Returns 1 where an evaluation meets the conditions, else 0.

    A condition is the least value of a metric. An epoch where one of them is blank was not
    evaluated, and is nan.
    """
    blank = np.full(len(columns["time/elapsed_s"]), np.nan)
    values = np.array([columns.get(name, blank) for name in conditions])  # [conditions, epochs]
    limits = np.array(list(conditions.values()))[:, None]
    met = np.all(values >= limits, axis=0)
    return np.where(np.any(np.isnan(values), axis=0), np.nan, met)


def first_time(
    columns: Mapping[str, Numbers], conditions: Mapping[str, float]
) -> tuple[int | None, float | None]:
    """Returns the row where the conditions were first met, and how often they were after.

    The row is None if they never were met, and the share of later evaluations that meet them None
    where there is none.
    """
    met = meets(columns, conditions)
    if not np.any(met == 1.0):
        return None, None
    first = int(np.nanargmax(met))
    later = met[first + 1 :]
    later = later[np.isfinite(later)]
    return first, float(later.mean()) if later.size else None


def reached(result: StoredResult, level: float) -> str:
    """Returns after what a run first came to a level of success; blank where it had no task."""
    if not evaluated(result, SUCCESS).size:
        return ""
    return when(result, first_time(result.columns, {SUCCESS: level})[0])


def when(result: StoredResult, row: int | None) -> str:
    """Returns minutes and steps until a row; never without one."""
    if row is None:
        return "never"
    taken, steps = spent_until(result, row)
    return f"{minutes(taken)} min, {steps:.0f} k steps"


def spent_until(result: StoredResult, row: int) -> tuple[float, float]:
    """Returns minutes and thousands of environment steps until a row."""
    steps = result.in_all("time/env_steps")[row] / 1e3
    return float(seconds_of(result)[row]) / 60.0, float(steps)


def seconds_of(result: StoredResult) -> Numbers:
    """Returns the seconds until each row: since the launch, what it started from included.

    Of a result that does not know its launch, those of training and evaluation.
    """
    trained, launched = "time/elapsed_s", "time/wall_s"
    if launched not in result.columns:
        return result.in_all(trained)
    before = result.details.get(BEFORE, {})
    earlier: float = before.get(launched, before.get(trained, 0.0))
    return result.columns[launched] + earlier


def after(result: StoredResult, metric: str, steps: int) -> float | None:
    """Returns a metric after a number of environment steps in all; None without an evaluation."""
    at = np.flatnonzero(result.in_all("time/env_steps") == steps)
    known = at.size and evaluated(result, metric).size
    return float(result.columns[metric][at[0]]) if known else None


def control_table(
    sources: Mapping[str, str],
    results: Path,
    wanted: Mapping[str, float] = _HAS_CONTROL,
    name: str = "control",
) -> str:
    """Returns when seeds of unsupervised runs came to control, and their last 100 episodes.

    Rows have labels, with `{seed}` in them, by study or pattern of files. What else there is
    beside a run, such as a random policy, comes from the first run of the first. `wanted` are the
    least values that count as control, or as what `name` says. Co-motion since then is the median
    of evaluations.
    """
    runs = [
        (label, run)
        for source, label in sources.items()
        for group in runs_of([source] if "*" in source else source, results).values()
        for run in group
    ]
    first = runs[0][1]
    shown = [
        name
        for name in TITLES
        if name in _BEHAVIOUR
        or (name.startswith(COVERAGE) and any(name in final_of(run) for _, run in runs))
    ]

    def cells(run: StoredResult, policy: str) -> list[str]:
        return [number(final_of(run, policy).get(name)) for name in shown]

    rows = []
    for label, run in runs:
        moves, _ = first_time(run.columns, _MOVES)
        control, held = first_time(run.columns, wanted)
        since = run.columns["eval/object_comotion_m"][control:] if control is not None else None
        cores = f", {place_of(run)}" if place_of(run) != place_of(first) else ""
        rows.append(
            [
                label.format(seed=option_of(run, "seed", "0")) + cores,
                when(run, moves),
                when(run, control),
                "" if held is None else f"{held:.0%}",
                number(None if since is None else float(np.nanmedian(since))),
                minutes(seconds_of(run)[-1] / 60.0),
                *cells(run, "ours"),
            ]
        )
    for policy in policies_beside(first):
        rows.append([_POLICIES.get(policy, policy), *[""] * 5, *cells(first, policy)])
    since_then = "co-motion since then (m)"
    header = ["", "moves it (80 %)", name, "held", since_then, "minutes in all"]
    return markdown([*header, *(TITLES[name] for name in shown)], rows)


def task_table(levels: Mapping[str, float], results: Path) -> str:
    """Returns when each seed of studies first reached its level of success, and how it ended.

    A level belongs to a study, or to a pattern of stored results.
    """
    header = ["task", "seed", "on", "level", "first reached after", "best"]
    header += ["mean of the last five", "100 episodes at the end", "minutes in all"]
    rows = []
    for source, level in levels.items():
        groups = runs_of((source,) if source.endswith(".csv") else source, results)
        for run in itertools.chain(*groups.values()):
            success = evaluated(run, SUCCESS)
            rows.append(
                [
                    option_of(run, "env-id").rpartition("-v")[0]
                    + (f", lag {lag}" if (lag := option_of(run, "lag")) else ""),
                    option_of(run, "seed", "0"),
                    place_of(run),
                    f"{level:g}",
                    reached(run, level),
                    number(success.max()) if success.size else "",
                    number(success[-_STEADY:].mean()) if success.size else "",
                    number(final_of(run).get(SUCCESS)),
                    minutes(seconds_of(run)[-1] / 60.0),
                ]
            )
    return markdown(header, rows)


def arrivals_table(levels: Mapping[str, Mapping[str, float]], results: Path) -> str:
    """Returns after how many steps and minutes runs first came to a level: median and each seed.

    A level, the least values of metrics, belongs to a pattern of stored results. A seed that never
    came there is a dash, and later than all others.
    """

    def cell(values: Sequence[float], digits: int) -> str:
        median, *each = (
            f"{value:.{digits}f}" if math.isfinite(value) else "-"
            for value in (statistics.median(values), *values)
        )
        return f"{median} ({', '.join(each)})"

    rows = []
    for pattern, wanted in levels.items():
        for runs in runs_of((pattern,), results).values():
            taken, steps = [], []
            for run in runs:
                row, _ = first_time(run.columns, wanted)
                spent = (math.inf, math.inf) if row is None else spent_until(run, row)
                taken.append(spent[0])
                steps.append(spent[1])
            level = ", ".join(f"{TITLES[name]} {least:g}" for name, least in wanted.items())
            task = option_of(runs[0], "env-id").rpartition("-v")[0]
            recipe = runs[0].command.partition(" train ")[2].split()[0]
            words = [task, f"`{recipe}`", option_of(runs[0], "music.learning-rate")]
            processor = re.search(r"cores? of ([^,]+)", runs[0].made_with)
            on = [place_of(runs[0]), *([processor[1].replace("(R)", "")] if processor else [])]
            cells = [", ".join(on), level, cell(steps, 0), cell(taken, 1)]
            rows.append([", ".join(filter(None, words)), *cells])
    return markdown(["", "on", "level", "thousand steps", "minutes from the launch"], rows)


def search_table(
    source: Source, settings: Mapping[str, str], tasks: Mapping[str, Sequence[str]], results: Path
) -> str:
    """Returns how often each setting of a search had control, by which it is judged.

    Settings have labels, one for several that are the same. Tasks have metrics to show: means of
    the last five evaluations. Before them stands the share of all evaluations that had control, and
    in front its mean over tasks, blank until a setting was tried on each.
    """
    groups = runs_of(source, results)
    header = ["", "had control"]
    for task, metrics in tasks.items():
        on = f"on {task.rpartition('-v')[0]}"
        header += [on, *(f"{TITLES[metric]} {on}" for metric in metrics)]
    rows = []
    for label in dict.fromkeys(settings.values()):
        same = [setting for setting in settings if settings[setting] == label]
        shares, cells = [], []
        for task, metrics in tasks.items():
            runs = [run for setting in same for run in groups.get(f"{setting}_{task}", [])]
            had = [float(np.nanmean(meets(run.columns, _HAS_CONTROL))) for run in runs]
            shares.append(statistics.fmean(had) if had else math.nan)
            cells.append(each_seed(had))
            for metric in metrics:
                last = [float(evaluated(run, metric)[-_STEADY:].mean()) for run in runs]
                cells.append(each_seed(last))
        rows.append([label, number(statistics.fmean(shares)), *cells])
    return markdown(header, rows)


def steps_table(files: Mapping[str, str], steps: Sequence[int], results: Path) -> str:
    """Returns the success of single runs after numbers of environment steps.

    Runs have labels by their path without `.csv`; a cell is blank where no evaluation ended then.
    """
    rows = []
    for name, label in files.items():
        result = read(results / f"{name}.csv")
        found = [after(result, SUCCESS, count) for count in steps]
        rows.append([label, option_of(result, "seed", "0"), *map(number, found)])
    return markdown(["run", "seed", *_titles_after(steps, TITLES[SUCCESS])], rows)


def progress_table(
    source: Source,
    steps: Sequence[int],
    results: Path,
    metric: str = SUCCESS,
    others: Sequence[str] = (),
) -> str:
    """Returns a metric of each condition after numbers of steps: the mean, and every seed.

    Steps of the run that one started from are included; a run is blank where no evaluation ended
    then. Conditions without the metric have the first that they know of `others`, or no row.
    """
    rows = []
    for group, runs in runs_of(source, results).items():
        known = [
            name for name in (metric, *others) if any(evaluated(run, name).size for run in runs)
        ]
        if known:
            cells = [each_seed([after(run, known[0], count) for run in runs]) for count in steps]
            rows.append([label_of(group), str(len(runs)), *cells])
    return markdown(["", "seeds", *_titles_after(steps, TITLES.get(metric, metric))], rows)


def episodes_table(
    source: Source, episodes: Sequence[int], results: Path, debiased: bool = False
) -> str:
    """Returns the running log q after numbers of training episodes: mean and every seed.

    It is interpolated between epochs, and blank where a run has not seen so many episodes.
    `debiased` leaves out what it began with, the first epoch: it then weighs later ones alone.
    """
    rows = []
    for group, runs in runs_of(source, results).items():
        found = []
        for run in runs:
            known = np.isfinite(run.columns[RUNNING])
            seen, average = run.columns["time/episodes"][known], run.columns[RUNNING][known]
            if debiased:
                later = seen > seen[0]
                kept = KEPT ** (seen[later] - seen[0])
                seen, average = seen[later], (average[later] - kept * average[0]) / (1.0 - kept)
            found.append(np.interp(episodes, seen, average, left=math.nan, right=math.nan))
        cells = [each_seed([float(one) for one in column]) for column in zip(*found, strict=True)]
        rows.append([label_of(group), str(len(runs)), *cells])
    first, *others = map(str, episodes)
    titles = [f"after {first}", *others[:-1], f"{others[-1]} episodes"]
    return markdown(["", "seeds", *titles], rows)


def _titles_after(steps: Sequence[int], title: str) -> list[str]:
    first, *others = [f"{count // 1000}" for count in steps]
    return [f"{title} after {first}", *others[:-1], f"{others[-1]} thousand steps"]


def study_table(source: Source, results: Path) -> str:
    """Returns the last 100 episodes of each condition: the mean, and every seed.

    Where there is a task, also when the conditions reached `_LEVELS` of success; what the runs took
    that they started from is counted.
    """
    groups = runs_of(source, results)
    shown = _titles_in(groups)
    levels = _LEVELS if SUCCESS in shown else ()
    header = ["condition", "seeds", "thousand steps in all", "minutes in all"]
    header += [f"success {level:g} after" for level in levels]
    rows: list[list[str]] = []
    others: dict[str, Mapping[str, float]] = {}
    for group, runs in groups.items():
        steps = [run.in_all("time/env_steps")[-1] / 1e3 for run in runs]
        taken = [seconds_of(run)[-1] / 60.0 for run in runs]
        row = [label_of(group), str(len(runs)), f"{statistics.fmean(steps):.0f}"]
        row.append(each_seed(taken, minutes))
        for level in levels:
            found = [reached(run, level) for run in runs]
            row.append(found[0] if len(set(found)) == 1 else "; ".join(found))
        row += [each_seed([final_of(run).get(metric) for run in runs]) for metric in shown]
        rows.append(row)
        for policy in policies_beside(runs[0]):
            label = label_beside(policy, option_of(runs[0], "env-id"))
            others.setdefault(label, final_of(runs[0], policy))
    for label, final in others.items():
        blank = [""] * (len(header) - 1)
        rows.append([label, *blank, *(number(final.get(metric)) for metric in shown)])
    return markdown([*header, *shown.values()], rows)


def shown_table(name: str, study: Study, results: Path) -> str:
    """Returns what a study says that it shows: means over seeds with their 95 % intervals.

    Of each run what was measured at its end counts, else the last value in its metrics. Intervals
    are Student's. Random actions have a row where they were measured too.
    """
    rows: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for group, runs in runs_of(name, results).items():
        condition, place = _condition_and_place(study, group, runs[0])
        found = [[ended_with(run, metric) for run in runs] for metric in study.shown]
        rows[f"{condition}, {place}"] = [*map(mean_of, found), str(len(runs))]
        beside = [measures_of(run, "random") for run in runs]
        if all(set(study.shown) & set(one) for one in beside):
            means = [mean_of([one.get(metric) for one in beside]) for metric in study.shown]
            others[f"random actions, {place}"] = [*means, str(len(runs))]
    cells_of = {**rows, **others}
    return markdown(
        ["", *study.shown.values(), "seeds"], [[row, *cells] for row, cells in cells_of.items()]
    )


def worlds_table(name: str, study: Study, results: Path) -> str:
    """Returns what each skill does in each stage of its world, first and last, on the first seed.

    Both are by the weights of then; a skill that rests does the same.
    """
    rows = []
    for group, runs in runs_of(name, results).items():
        condition, place = _condition_and_place(study, group, runs[0])
        played: dict[tuple[float, float], list[Mapping[str, float]]] = {}
        for row in runs[0].details.get(WORLDS, ()):
            played.setdefault((row.get("skill", -1.0), row["world"]), []).append(row)
        for (skill, world), found in sorted(played.items()):
            first, last = found[0], found[-1]
            ends = "; ".join(
                ", ".join(number(row[end]) for end in ENDS if end in row) for row in (first, last)
            )
            cells = [number(row.get("return")) for row in (first, last)]
            cells += [ends, *(number(last.get(name)) for name in ("moved", "hausdorff"))]
            stage = f"{last['learned_in']:.0f}"
            which = f"{skill:.0f}" if skill >= 0 else ""
            rows.append([f"{condition}, {place}", which, stage, f"{world:.0f}", *cells])
    titles = ("return first", "return at the end", "ends first; at the end", "moved", "nearest")
    return markdown(["", "skill", "learned in", "played in", *titles], rows)


def _condition_and_place(study: Study, group: str, run: StoredResult) -> tuple[str, str]:
    """Returns the words of a study for a condition, and for where it was trained."""
    labels = {one.name: one.label or one.name for one in study.conditions}
    condition = max((one for one in labels if group.startswith(one)), key=len)
    place = option_of(run, "env-id").removeprefix("music_tf/").partition("-v")[0]
    return labels[condition], place


def ended_with(run: StoredResult, metric: str) -> float | None:
    """Returns what was measured at the end of a run, else the last value in its metrics."""
    found, values = measures_of(run).get(metric), evaluated(run, metric)
    return float(values[-1]) if found is None and values.size else found


def mean_of(values: Sequence[float | None]) -> str:
    """Returns the mean of values of seeds, and the half width of its 95 % interval.

    Equal values, and a single one, have none: no width would say that no seed could differ. Blank
    where a seed lacks its value.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return ""
    shown = f"{statistics.fmean(known):.2f}"
    return shown if np.ptp(known) == 0.0 else f"{shown} ± {half_width(known):.2f}"


def _titles_in(groups: Mapping[str, Sequence[StoredResult]]) -> dict[str, str]:
    """Returns the metrics that the last 100 episodes of any run have."""
    present = {metric for runs in groups.values() for run in runs for metric in final_of(run)}
    return {metric: title for metric, title in TITLES.items() if metric in present}


def measures_table(
    source: Source, columns: Mapping[str, str], results: Path, beside: bool = True
) -> str:
    """Returns measures of each condition, as the mean and every seed, and of simple policies.

    Those come from the first run on each environment; one without any of the measures has no row.
    """
    groups = runs_of(source, results)
    rows = {label_of(group): [measures_of(run) for run in runs] for group, runs in groups.items()}
    tasks = {option_of(runs[0], "env-id"): runs[0] for runs in reversed(groups.values())}
    for env_id, run in sorted(tasks.items()) if beside else ():
        for policy in policies_beside(run):
            found = measures_of(run, policy)
            if any(metric in found for metric in columns):
                rows[label_beside(policy, env_id)] = [found]
    cells = [
        [label, *(each_seed([one.get(metric) for one in found]) for metric in columns)]
        for label, found in rows.items()
    ]
    return markdown(["", *columns.values()], cells)


def difference_table(
    source: Source, base: str, results: Path, columns: Mapping[str, str] | None = None
) -> str:
    """Returns how far conditions lie from one of them, on the same environment.

    Each cell is a difference of means over seeds and the half width of its 95 % interval; where the
    second is larger, the difference is not resolved. Shares at a bound have `counts` in its place.
    Columns are titles by measure; unset, those of the last 100 episodes.
    """
    groups = runs_of(source, results)
    columns = columns or _titles_in(groups)
    measured = {group: [measures_of(run) for run in runs] for group, runs in groups.items()}
    rows = []
    for group, ours in measured.items():
        task = folder_name(option_of(groups[group][0], "env-id"))
        theirs = measured.get(f"{base}_{task}", ours)
        if theirs is not ours:
            cells = [
                difference(
                    *([one.get(metric) for one in side] for side in (ours, theirs)),
                    shares=metric.endswith("_rate") or metric in _SHARES,
                )
                for metric in columns
            ]
            rows.append([f"{label_of(group)}, minus `{base}`", *cells])
    return markdown(["", *columns.values()], rows)


def library_table(ours: str, theirs: str, results: Path) -> str:
    """Returns our return and speed beside another library's, on each environment.

    Our return is that of the last 100 episodes, theirs that of the last evaluation. The interval of
    the ratio of the means is the percentile bootstrap's over seeds (95 %). Steps a minute leave
    evaluations out.
    """
    rows = []
    others = {group.partition("_")[2]: runs for group, runs in runs_of(theirs, results).items()}
    for group, runs in runs_of(ours, results).items():
        task = group.partition("_")[2]
        returns = [final_of(run)[RETURN] for run in runs]
        their_returns = [float(evaluated(run, RETURN)[-1]) for run in others[task]]
        found = stats.bootstrap(
            (returns, their_returns),
            lambda one, other, axis: one.mean(axis=axis) / other.mean(axis=axis),
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(0),
        )
        low, high = found.confidence_interval
        speeds = [
            [run.columns["time/env_steps"][-1] / training_seconds(run) * 60.0 for run in side]
            for side in (runs, others[task])
        ]
        quick, slow = map(statistics.fmean, speeds)
        rows.append(
            [
                task,
                each_seed(returns, "{:.0f}".format),
                each_seed(their_returns, "{:.0f}".format),
                f"{statistics.fmean(returns) / statistics.fmean(their_returns):.2f} "
                f"({low:.2f} to {high:.2f})",
                f"{quick:.0f}",
                f"{slow:.0f}",
                f"{quick / slow:.1f}",
            ]
        )
    header = ["", "our return", "their return", "ratio", "our steps a minute", "theirs", "ratio"]
    return markdown(header, rows)


def training_seconds(run: StoredResult) -> float:
    """Returns the seconds of a run without its evaluations."""
    if "time/fps" not in run.columns:  # the clock of `compare_baselines.py` leaves them out
        return float(run.columns["time/elapsed_s"][-1])
    steps = np.diff(run.columns["time/env_steps"], prepend=0.0)
    return float(np.sum(steps / run.columns["time/fps"]))


def skills_table(source: Source, results: Path) -> str:
    """Returns what each skill of each run does, and how often it is recognised."""
    rows = []
    for group, runs in runs_of(source, results).items():
        for run, found in ((one, skill) for one in runs for skill in one.details.get("skills", [])):
            way = found["shift_m"]
            metrics = (ACCURACY, *_OF_A_SKILL)
            rows.append(
                [
                    label_of(group),
                    option_of(run, "seed", "0"),
                    str(found["skill"]),
                    *(number(found["metrics"].get(metric)) for metric in metrics),
                    ", ".join(f"{part:+.2f}" for part in way) if way else "",
                    direction(*way[:2]) if way else "",
                ]
            )
    titles = [TOLD_APART[ACCURACY], *(TITLES[metric] for metric in _OF_A_SKILL)]
    return markdown(["", "seed", "skill", *titles, "mean way (m)", "from above"], rows)


_OF_ALL_SKILLS = {
    "skill/log_likelihood_heldout": "log q (nats)",
    ACCURACY: "recognised",
    "skill/diversity_return": "diversity return",
    "dads/reward_heldout": "reward of DADS (nats)",
}


def means_over_skills(source: Source, results: Path) -> str:
    """Returns how well the skills of each run are told apart, and the least and largest return.

    Runs are by condition, and their seeds in parentheses; each number is a mean over skills.
    Conditions without skills are left out.
    """
    rows = []
    for group, runs in runs_of(source, results).items():
        of_runs = [[skill["metrics"] for skill in run.details["skills"]] for run in runs]
        if not all(of_runs):
            continue
        cells = []
        for metric in _OF_ALL_SKILLS:
            known = [[one[metric] for one in skills if metric in one] for skills in of_runs]
            cells.append(each_seed([statistics.fmean(each) if each else None for each in known]))
        ends = [[one[RETURN] for one in skills] for skills in of_runs]
        returns = ", ".join(f"{number(min(each))} to {number(max(each))}" for each in ends)
        rows.append([label_of(group), *cells, returns])
    return markdown(["", *_OF_ALL_SKILLS.values(), "returns by seed"], rows)


def joints_table(name: str, results: Path) -> str:
    """Returns what broken joints leave of returns, as `broken_joints.py` has found."""
    found = json.loads((results / name).read_text(encoding="utf-8"))["returns"]
    rows = []
    for joint, sides in found.items():
        cells = [each_seed(sides[side], "{:.0f}".format) for side in ("skills", "plain")]
        rows.append([joint, *cells, difference(sides["skills"], sides["plain"])])
    return markdown(["broken joint", "best skill", "without skills", "difference"], rows)


_NEGATIVES_STEPS = (40_000, 64_000, 88_000, 112_000)

_MUSIC_STEPS = (40_000, 64_000, 80_000, 120_000, 160_000)
_CONTROLS = {
    "frozen": "frozen",
    "frozen_mean5": "frozen, `mean 5`",
    "frozen_hold8": "frozen, `random-hold 8`",
    "joint_motion": "joint motion",
    "joint_motion5": "joint motion, `threshold 0.005`",
    "random_reward": "random reward",
    "continue": "`continue`",
    "continue_1e3": "`continue`, 1e-3",
}
"""Labels of the conditions of `music_controls`, in the order of rows."""
_RATES = {"music": "", "rate_1e3": "1e-3, "}
"""Labels of the conditions of `music_holds`, two step sizes of the statistics network."""
_LEARNED_OR_NOT = (
    *(f"music_holds/{name}_FetchP*_seed*.csv" for name in _RATES),
    *(f"music_controls/{name}_Fetch*_seed*.csv" for name in _CONTROLS if name != "continue_1e3"),
)
_SEARCHED = {
    group: f"{label}, {value}"
    for reward, label, own in (
        ("music", "learned", {"slow": "`learning-rate 1e-4`"}),
        ("music_frozen", _CONTROLS["frozen"], {"music_frozen_units512": "`hidden-size 512`"}),
        (
            "joint_motion",
            _CONTROLS["joint_motion"],
            {"joint_motion_threshold5": "`threshold 0.005`"},
        ),
    )
    for group, value in {
        f"{reward}_preset": "preset",
        f"{reward}_mean5": "`mean 5`",
        f"{reward}_penalty01": "`action-l2 0.1`",
        f"{reward}_hold8": "`random-hold 8`",
        **own,
    }.items()
}
"""Labels of the conditions of `music_settings`, and of the one in `music_slow`."""
_SHOWN_OF_A_SEARCH = {
    "FetchPush-v4": ["eval/object_comotion_m"],
    "FetchPickAndPlace-v4": ["eval/object_comotion_m", "eval/object_lift_rate"],
}
_FROZEN_GAIN = ("mi_matters/music_FetchPush-v4_seed*.csv", "frozen_gain/*_seed*.csv")


_lifts_table = partial(control_table, wanted=_LIFTS, name="control, and lifts (60 %)")


def _of_each_rate(task: str) -> dict[str, str]:
    return {
        f"music_holds/{name}_{task}_seed*.csv": f"{label}seed {{seed}}"
        for name, label in _RATES.items()
    }


TABLES: Mapping[str, Callable[[Path], str]] = {
    "music_push": partial(
        control_table,
        {
            "music_push": "seed {seed}",
            "sac_music_push": "`sac_music`, seed {seed}",
        },
    ),
    "music_pick": partial(control_table, {"music_pick": "seed {seed}"}),
    "music_holds_push": partial(
        control_table,
        {
            **_of_each_rate("FetchPush-v4"),
            "music_sac/rate_1e3_FetchPush-v4_seed*.csv": "`sac_music`, 1e-3, seed {seed}",
        },
    ),
    "music_holds_pick": partial(_lifts_table, _of_each_rate("FetchPickAndPlace-v4")),
    **{
        f"music_holds_{name}": partial(control_table, _of_each_rate(task))
        for name, task in (("slide", "FetchSlide-v4"), ("panda", "PandaPush-v3"))
    },
    "music_holds_control": partial(measures_table, "music_holds", CONTROL),
    "music_fresh_push": partial(
        control_table, {"music_fresh/music_FetchPush-v4_seed*.csv": "seed {seed}"}
    ),
    "music_fresh_pick": partial(
        _lifts_table, {"music_fresh/music_FetchPickAndPlace-v4_seed*.csv": "seed {seed}"}
    ),
    "music_longer": partial(
        progress_table,
        "music_longer",
        (160_000, 184_000, 200_000, 216_000, 224_000, 240_000),
        metric="eval/object_lift_rate",
    ),
    "music_controls_push": partial(
        control_table,
        {
            f"music_controls/{name}_FetchPush-v4_seed*.csv": f"{label}, seed {{seed}}"
            for name, label in _CONTROLS.items()
            if name != "frozen_mean5"  # not run there yet
        },
    ),
    "music_controls_pick": partial(
        _lifts_table,
        {
            f"music_controls/{name}_FetchPickAndPlace-v4_seed*.csv": f"{label}, seed {{seed}}"
            for name, label in _CONTROLS.items()
        },
    ),
    "music_controls_differences": partial(difference_table, _LEARNED_OR_NOT, "music"),
    "music_controls_control_differences": partial(
        difference_table, _LEARNED_OR_NOT, "music", columns=CONTROL
    ),
    "music_controls_paid": partial(
        progress_table,
        _LEARNED_OR_NOT,
        (40_000, 80_000, 120_000, 160_000),
        metric="reward/music_mean",
        others=("reward/joint_motion_mean", "reward/random_reward_mean"),
    ),
    "music_settings": partial(
        search_table,
        ("music_settings/*_seed10[23].csv", "music_slow/slow_*_seed10[23].csv"),
        _SEARCHED,
        _SHOWN_OF_A_SEARCH,
    ),
    "music_slow": partial(
        search_table,
        ("music_settings/music_preset_*_seed*.csv", "music_slow/*_seed*.csv"),
        {"music_preset": "1e-3", "preset": "1e-3", "middle": "3e-4", "slow": "1e-4"},
        _SHOWN_OF_A_SEARCH,
    ),
    "alone": partial(
        arrivals_table,
        {
            "alone/music_FetchPush-v4_seed*.csv": _HAS_CONTROL,
            "alone/music_FetchPickAndPlace-v4_seed*.csv": _LIFTS,
            "alone/rate_1e3_FetchPush-v4_seed*.csv": _HAS_CONTROL,
            "alone/rate_1e3_FetchPickAndPlace-v4_seed*.csv": _LIFTS,
            "alone/fast_FetchPush-v4_seed*.csv": {SUCCESS: 0.95},
            "alone/fast_xeon_FetchPush-v4_seed*.csv": {SUCCESS: 0.95},
            "alone/fast_FetchPickAndPlace-v4_seed*.csv": {SUCCESS: 0.9},
        },
    ),
    "her_fast_now": partial(
        task_table,
        {
            "her_fast/fast_FetchPush-v4_seed*.csv": 0.95,
            "her_fast/fast_FetchPickAndPlace-v4_seed*.csv": 0.9,
            "her_fast/fast_FetchSlide-v4_seed*.csv": 0.6,
            "her_fast/fast_FetchReach-v4_seed*.csv": 0.98,
        },
    ),
    "her_fast_kept": partial(measures_table, "her_fast", _OF_A_TASK),
    "her_fast": partial(
        task_table,
        {
            "her_fast_reach": 0.98,
            "her_fast_push": 0.95,
            "her_fast_pick": 0.9,
            "her_fast_slide": 0.6,
        },
    ),
    "her_fast_push_steps": partial(
        progress_table, "her_fast_push", (80_000, 96_000, 104_000, 112_000)
    ),
    "her_search": partial(
        steps_table,
        {
            "search_her/push_no_music": "no MUSIC",
            "search_her/push_music_0_4": "MUSIC 0 to 4",
            "search_her/push_music_0_4_two_ranks": "MUSIC 0 to 4, two ranks",
            "search_her/push_music_5_8_two_ranks": "MUSIC 5 to 8, two ranks",
            "search_her/push_music_0_4_updates_80": "MUSIC 0 to 4, 80 updates",
            "search_her/push_music_1_4_updates_80": "MUSIC 1 to 4, 80 updates",
            "search_her/push_music_2_6_updates_80": "MUSIC 2 to 6, 80 updates",
            "search_her/push_music_added_updates_80": (
                "MUSIC added to the task until 6, 80 updates"
            ),
        },
        (32_000, 48_000, 64_000, 80_000, 112_000),
    ),
    "her_fast_controls_steps": partial(
        progress_table,
        (
            "her_fast/fast_FetchPush-v4_seed*.csv",
            "her_fast_controls/*_FetchPush-v4_seed*.csv",
        ),
        (40_000, 56_000, 64_000, 80_000, 96_000),
    ),
    "her_fast_controls_kept": partial(measures_table, "her_fast_controls", _OF_A_TASK),
    "fast_means_steps": partial(progress_table, "fast_means", (64_000, 80_000, 96_000, 112_000)),
    "lag_music": partial(
        control_table,
        {
            f"lag/music_lag_{lag}_FetchPush-v4_seed*.csv": f"lag {lag}, seed {{seed}}"
            for lag in (0, 1)
        },
    ),
    "lag_task": partial(
        task_table,
        {f"lag/her_fast_lag_{lag}_FetchPush-v4_seed*.csv": 0.95 for lag in (0, 1)},
    ),
    "lag_music_differences": partial(difference_table, ("lag/music_lag_*.csv",), "music_lag_0"),
    "lag_task_differences": partial(
        difference_table, ("lag/her_fast_lag_*.csv",), "her_fast_lag_0"
    ),
    "negatives_control": partial(
        progress_table, "negatives", _NEGATIVES_STEPS, metric="eval/object_comotion_m"
    ),
    "negatives_paid": partial(
        progress_table, "negatives", _NEGATIVES_STEPS, metric="reward/music_mean"
    ),
    "negatives_differences": partial(difference_table, "negatives", "swap"),
    "music_transfer_steps": partial(
        progress_table, "music_transfer", (64_000, 88_000, 112_000, 136_000)
    ),
    "transfer_differences": partial(difference_table, "transfer", "own"),
    "transfer_paid": partial(
        progress_table,
        "transfer",
        (88_000, 144_000, 168_000, 224_000),
        metric="reward/music_mean",
    ),
    "mi_matters_differences": partial(difference_table, "mi_matters", "music"),
    "mi_matters_control": partial(measures_table, "mi_matters", CONTROL),
    "mi_matters_control_differences": partial(
        difference_table, "mi_matters", "music", columns=CONTROL
    ),
    "frozen_gain": partial(study_table, _FROZEN_GAIN),
    "frozen_gain_steps": partial(
        progress_table, _FROZEN_GAIN, _MUSIC_STEPS, metric="eval/object_comotion_m"
    ),
    "unseen_seeds_steps": partial(
        progress_table, "unseen_seeds", _MUSIC_STEPS, metric="eval/object_comotion_m"
    ),
    "pendulum_steps": partial(
        progress_table, "pendulum", (2_000, 4_000, 6_000, 8_000, 10_000), metric=RETURN
    ),
    "panda_push_steps": partial(
        progress_table, "panda_push", (8_000, 16_000, 32_000, 56_000), metric=MOVED
    ),
    "moving_disc_found": partial(measures_table, "moving_disc", _OF_A_DISC),
    "moving_block_found": partial(measures_table, "moving_block", _OF_A_BLOCK),
    "hand_block_turned": partial(measures_table, "hand_block", _OF_A_HAND),
    "sac_locomotion_beside_sb3": partial(library_table, "sac_locomotion", "sb3_sac_locomotion"),
    "unseen_seeds_control": partial(measures_table, "unseen_seeds", CONTROL),
    "frozen_gain_differences": partial(difference_table, _FROZEN_GAIN, "music"),
    "frozen_gain_control": partial(measures_table, _FROZEN_GAIN, CONTROL),
    "frozen_gain_control_differences": partial(
        difference_table, _FROZEN_GAIN, "music", columns=CONTROL
    ),
    "unseen_seeds": partial(
        control_table,
        {
            "unseen_seeds": "seed {seed}",
            "mi_matters/music_FetchPush-v4_seed*.csv": "seed {seed}, chosen on",
        },
    ),
    "skills_control": partial(measures_table, "skills", CONTROL),
    "skills_toys_found": partial(measures_table, "skills_toys", TOLD_APART, beside=False),
    "skills_found": partial(measures_table, "skills", TOLD_APART, beside=False),
    "skills_found_differences": partial(difference_table, "skills", "diayn", columns=TOLD_APART),
    "skills_control_differences": partial(difference_table, "skills", "diayn", columns=CONTROL),
    "skills_each": partial(skills_table, "skills"),
    "skills_box": partial(means_over_skills, "skills_box"),
    "skills_tasks_found": partial(means_over_skills, "skills_tasks"),
    "skills_tasks_episodes": partial(
        episodes_table, "skills_tasks", (160, 200, 300, 400, 500, 600, 700)
    ),
    "skills_car_debiased": partial(
        episodes_table, ("skills_tasks/arriving_*_seed*.csv",), (50, 100, 150, 200), debiased=True
    ),
    "skills_smerl_found": partial(means_over_skills, "skills_smerl"),
    "broken_joints": partial(joints_table, JOINTS),
    "skills_ant_found": partial(means_over_skills, "skills_ant"),
    "skills_ant_goals": partial(study_table, ("skills_ant/*AntGoals*_seed*.csv",)),
    "skills_ant_goals_steps": partial(
        progress_table,
        ("skills_ant/sac_*AntGoals*_seed*.csv",),
        (100_000, 200_000, 400_000, 600_000, 700_000),
        metric=RETURN,
    ),
    "task_value_steps": partial(
        progress_table, "task_value", (72_000, 104_000, 144_000, 208_000, 272_000)
    ),
    "task_value_differences": partial(difference_table, "task_value", "her"),
}
_BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- /results -->)", re.DOTALL)


_TASKS = {"push": "FetchPush-v4", "pick": "FetchPickAndPlace-v4"}
_MORE = {"push": "eval/object_on_support_rate", "pick": "eval/object_lift_rate"}
"""What control of each task is judged by, beside co-motion."""


class Picture(NamedTuple):
    """What a picture shows."""

    files: Sequence[str]
    """Patterns under experiments/results."""
    metrics: Sequence[str]
    axis: str
    each: bool


PICTURES = {
    **{
        f"music_holds_{task}.png": Picture(
            [f"music_holds/music_{env_id}_seed*.csv"],
            ["eval/object_comotion_m", "reward/music_mean"],
            "steps",
            each=True,
        )
        for task, env_id in _TASKS.items()
    },
    **{
        f"music_controls_{task}.png": Picture(
            [
                f"music_holds/music_{env_id}_seed*.csv",
                *(
                    f"music_controls/{name}_{env_id}_seed*.csv"
                    for name in _CONTROLS
                    if name != "continue_1e3"
                ),
            ],
            ["eval/object_comotion_m", _MORE[task]],
            "steps",
            each=False,
        )
        for task, env_id in _TASKS.items()
    },
    "push_success.png": Picture(
        [
            f"{name}/*.csv"
            for name in ("her_fast_push", "her_push_two_ranks", "sb3_ddpg_push", "sb3_sac_push")
        ],
        ["eval/success_rate"],
        "minutes",
        each=False,
    ),
    "ranks_push.png": Picture(
        ["ranks_push/*.csv"], ["eval/object_moved_rate"], "minutes", each=False
    ),
    **{
        f"task_value_{task}_{axis}.png": Picture(
            [f"task_value/*_{env_id}_seed*.csv"], ["eval/success_rate"], axis, each=False
        )
        for task, env_id in _TASKS.items()
        for axis in ("steps", "minutes")
    },
    **{
        f"mi_matters_{task}.png": Picture(
            [f"{name}/*_{env_id}_seed*.csv" for name in ("mi_matters", "frozen_gain")],
            ["eval/object_comotion_m", "eval/object_on_support_rate"],
            "steps",
            each=False,
        )
        for task, env_id in _TASKS.items()
    },
    "search_push.png": Picture(
        ["search/push_*.csv"],
        ["eval/object_on_support_rate", "eval/object_comotion_m"],
        "steps",
        each=True,
    ),
    "search_pick.png": Picture(
        ["search/pick_*.csv"],
        ["eval/object_on_support_rate", "eval/object_comotion_m", "eval/object_lift_rate"],
        "steps",
        each=True,
    ),
}


def pages() -> list[Path]:
    """Returns the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def studies_in(results: Path) -> set[str]:
    """Returns the studies with stored results."""
    return {path.parent.name for path in results.glob("*/*_seed*.csv")}


def filled(text: str, results: Path = RESULTS) -> str:
    """Returns a page with the tables that its markers name.

    Raises:
        UsageError: A marker names no table, or a stored result is missing or damaged.
    """
    studies = studies_in(results)

    def fill(block: re.Match[str]) -> str:
        head, name, tail = block.groups()
        whole = name.removesuffix("_worlds")
        file = STUDIES / f"{whole}.py"
        if whole not in studies and file.exists():
            return f"{head}Not measured yet.\n{tail}"
        if whole in studies and whole != name:
            found = worlds_table(whole, load_study(file), results)
            return f"{head}{found}\n{tail}"
        if name not in studies and name not in TABLES:
            raise UsageError(f"results: no table {name}{suggestion(name, [*TABLES, *studies])}")
        if name in TABLES:
            return f"{head}{TABLES[name](results)}\n{tail}"
        study = load_study(file) if file.exists() else None
        if study is not None and study.shown:
            return f"{head}{shown_table(name, study, results)}\n{tail}"
        return f"{head}{study_table(name, results)}\n{tail}"

    return _BLOCK.sub(fill, text)


def outdated_pictures() -> list[str]:
    """Returns the pictures whose results, or whose own content, are others than noted."""
    noted = json.loads(ORIGINS.read_text(encoding="utf-8")) if ORIGINS.exists() else {}
    return [name for name in PICTURES if noted.get(name) != _origin(name)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes what has changed, or only says it, and returns the exit code.

    Raises:
        UsageError: A marker names no table, or a stored result is missing or damaged.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    given = parser.parse_args(arguments)
    changed = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            changed[page] = filled(text)
    pictures = outdated_pictures()
    for path in [*changed, *(IMAGES / name for name in pictures)]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if given.check:
        return EXIT_BUG if changed or pictures else EXIT_DONE
    for page, text in changed.items():
        page.write_text(text, encoding="utf-8")
    for name in pictures:
        picture = PICTURES[name]
        curves = [load_curve(path) for path in _files(picture)]
        draw_curves(curves, picture.metrics, picture.axis, IMAGES / name, picture.each)
    if pictures:
        origins = {name: _origin(name) for name in PICTURES}
        ORIGINS.write_text(json.dumps(origins, indent=1) + "\n", encoding="utf-8")
    return EXIT_DONE


def _files(picture: Picture) -> list[Path]:
    return [path for pattern in picture.files for path in sorted(RESULTS.glob(pattern))]


def _origin(name: str) -> dict[str, Any]:
    """Returns digests of what a picture shows, and of the picture."""
    picture = PICTURES[name]
    titles = [METRICS[metric] for metric in picture.metrics]
    shown = hashlib.sha256(repr((picture, titles)).encode())
    for path in _files(picture):
        shown.update(path.read_bytes())
    path = IMAGES / name
    drawn = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return {"results": shown.hexdigest(), "picture": drawn}


if __name__ == "__main__":
    leave(guarded(main))
