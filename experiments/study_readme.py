"""Writes what was done in a study, and all its measures: the README beside its stored results."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.intervals import difference, mean, number
from experiments.stored import (
    RESULTS,
    Group,
    about,
    evaluated,
    followed,
    groups_of,
    is_share,
    planned,
    policies_beside,
)
from experiments.study_pictures import IMAGES
from experiments.study_table import cell, made_by, markdown, rows_beside, waiting
from music_tf.measures.behaviour import direction
from music_tf.runs.comparison import RANDOM_SHOVE, SHOVE
from music_tf.storage.results import WORLDS
from music_tf.storage.worlds import ENDS

_SIMPLE = {
    "random": "random actions",
    "nothing": "no action",
    SHOVE: SHOVE,
    RANDOM_SHOVE: RANDOM_SHOVE,
}
"""Policies that learn nothing, with the titles of their rows."""
_STAGES = 6
"""Columns of a table of `Study.followed`."""


def readme(name: str, results: Path = RESULTS) -> str:
    """Returns the README of a study."""
    study, planned_groups = planned(name), groups_of(name, results)
    own_groups = [group for group in planned_groups if group.study == name]
    groups = [group for group in planned_groups if group.runs]
    parts = [
        f"# {name}\n\n{study.question} Role: {study.role}. `make results` writes this page.",
        about(name),
        f"{made_by(name, own_groups)}.{waiting(own_groups)}",
        "Means have half of their 95 % interval (Student's t), differences Welch's; shares at a "
        "bound have counts of seeds. Many measures are compared: an interval that just excludes "
        "zero may be chance. [What each measure is](../../../docs/metrics.md).",
        *(
            f"![{', '.join(picture.metrics)}]({os.path.relpath(IMAGES, RESULTS / name)}/"
            f"{picture.name}.png)"
            for picture in study.pictures
        ),
    ]
    for task in study.tasks:
        here = [group for group in groups if group.task.env_id == task.env_id]
        if not here:
            continue
        parts += [f"## {here[0].place}", _overview(here, study.overview or study.shown)]
        parts += _differences(here, study.compared_with)
        parts += [_progress(here, metric) for metric in study.followed]
        for group in here:
            if group.study == name:
                parts += [f"### {group.label}, {group.place}", _by_seed(group)]
                parts += [*_each_skill(group), *_each_world(group)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _overview(groups: Sequence[Group], titles: Mapping[str, str]) -> str:
    """Returns a row for each condition on a task, and for each policy of `_SIMPLE`."""
    rows = [[group.label, *(cell(group, metric) for metric in titles)] for group in groups]
    for policy, label in _SIMPLE.items():
        for title, row in rows_beside(policy, label, groups, titles):
            cells = [mean(values, share=is_share(metric)) for metric, values in row.items()]
            rows.append([title, *cells])
    return markdown(["", *titles.values()], rows) if titles else ""


def _by_seed(group: Group) -> str:
    """Returns a row per measure: its mean, every seed, and simple policies of the first seed."""
    measured = group.measured
    others = policies_beside([*group.runs.values()])
    beside = [group.beside(policy)[0] for policy in others]
    names = dict.fromkeys(name for measures in (*measured, *beside) for name in measures)
    rows = [
        [
            f"`{name}`",
            cell(group, name) if any(name in measures for measures in measured) else "",
            *(_exactly(measures.get(name)) for measures in (*measured, *beside)),
        ]
        for name in names
    ]
    return markdown(["", "mean", *(f"seed {seed}" for seed in group.runs), *others], rows)


def _exactly(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if math.isfinite(value) else "never"


def _differences(groups: Sequence[Group], base: str) -> list[str]:
    """Returns the differences of conditions from the baseline on a task, a column for each."""
    sources = [group for group in groups if group.condition.name == base]
    others = [group for group in groups if group.condition.name != base]
    if not sources or not others:
        return []
    theirs = sources[0].measured
    names = [name for name in theirs[0] if not name.startswith(("spent/", "level/"))]
    base_values = [[measures.get(name) for measures in theirs] for name in names]
    rows = [
        [
            f"`{name}`",
            *(
                difference([row.get(name) for row in group.measured], values, share=is_share(name))
                for group in others
            ),
        ]
        for name, values in zip(names, base_values, strict=True)
    ]
    titles = [f"{group.label} minus {sources[0].label}" for group in others]
    return [markdown(["", *titles], rows)]


def _progress(groups: Sequence[Group], metric: str) -> str:
    """Returns a metric of each condition after total numbers of steps."""
    runs = [run for group in groups for run in group.runs.values() if evaluated(run, metric).size]
    if not runs:
        return ""
    counts = runs[0].in_all("time/env_steps")[np.isfinite(runs[0].columns[metric])]
    stages = counts[np.linspace(0, len(counts) - 1, min(_STAGES, len(counts))).astype(int)]
    rows = []
    for group in groups:
        if any(evaluated(run, metric).size for run in group.runs.values()):
            curves = [followed(run, metric, stages) for run in group.runs.values()]
            cells = [mean(column, share=is_share(metric)) for column in zip(*curves, strict=True)]
            rows.append([group.label, *cells])
    titles = [f"{count / 1e3:g} thousand steps" for count in stages]
    return markdown([f"`{metric}` after", *titles], rows)


def _each_skill(group: Group) -> Iterator[str]:
    """Yields a table of the metrics of each skill of each run, and of how it moves the object."""
    skills = [
        (seed, skill) for seed, run in group.runs.items() for skill in run.details.get("skills", ())
    ]
    if skills:
        names = dict.fromkeys(name for _, skill in skills for name in skill["metrics"])
        rows = []
        for seed, skill in skills:
            way = skill.get("shift_m")
            moved = ", ".join(f"{part:+.2f}" for part in way) if way else ""
            cells = [_exactly(skill["metrics"].get(name)) for name in names]
            toward = direction(*way[:2]) if way else ""
            rows.append([str(seed), str(skill["skill"]), *cells, moved, toward])
        titles = [f"`{name}`" for name in names]
        yield markdown(["seed", "skill", *titles, "mean way (m)", "from above"], rows)


def _each_world(group: Group) -> Iterator[str]:
    """Yields a table of each skill in each stage of its world, at its first and last measurement.

    Both are with the weights at that time; those of a frozen skill do not change.
    """
    rows = []
    for seed, run in group.runs.items():
        played: dict[tuple[float, float], list[dict[str, float]]] = {}
        for row in run.details.get(WORLDS, ()):
            played.setdefault((row.get("skill", -1.0), row["world"]), []).append(row)
        for (skill, world), measured in sorted(played.items()):
            first, last = measured[0], measured[-1]
            ends = "; ".join(
                ", ".join(number(row[end]) for end in ENDS if end in row) for row in (first, last)
            )
            cells = [number(row.get("return")) for row in (first, last)]
            cells += [ends, *(number(last.get(name)) for name in ("moved", "hausdorff"))]
            which = f"{skill:.0f}" if skill >= 0 else ""
            rows.append([str(seed), which, f"{last['learned_in']:.0f}", f"{world:.0f}", *cells])
    if rows:
        titles = ("return first", "at the end", "ends first; at the end", "moved", "nearest")
        yield markdown(["seed", "skill", "learned in", "played in", *titles], rows)
