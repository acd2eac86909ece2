"""The table of a study for a page, and the mean of one condition for a sentence."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from experiments.intervals import arrivals, mean, with_least
from experiments.stored import (
    FIRST,
    HELD,
    MINUTES,
    SKILLS,
    WINDOW,
    Group,
    groups_of,
    is_share,
    planned,
)
from music_tf.config.names import suggestion
from music_tf.errors import UsageError
from music_tf.storage.metrics import METRICS

USUAL_MUJOCO = "3.10.0"
"""Version that docs/results.md names for all results."""
FEWEST = 2
"""Fewest seeds of a row on a page; README beside the stored results has all rows."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def table_of(names: Sequence[str], page: Path, results: Path) -> str:
    """Returns the table of one or several studies, with links to all their rows and seeds."""
    titles = planned(names[0]).shown
    if not titles:
        raise UsageError(f"{names[0]}: does not say what its table shows (shown={{...}})")
    groups = [group for name in names for group in groups_of(name, results)]
    measured = [group for group in groups if len(group.runs) >= FEWEST]
    readmes = {name: results / name / "README.md" for name in names if (results / name).is_dir()}
    links = [f"[{name}]({os.path.relpath(path, page.parent)})" for name, path in readmes.items()]
    if not measured:
        waits = f"Not measured yet: `music-tf study experiments/studies/{names[0]}.py`."
        return f"Rows of single seeds: {', '.join(links)}." if links else waits
    for metric in titles:
        if not any(value is not None for group in measured for value in group.final(metric)):
            stored = {name for group in measured for row in group.measured for name in row}
            hint = suggestion(metric, {*stored, *METRICS})
            raise UsageError(f"{names[0]}: no run has {metric!r}, which its table shows{hint}")
    places = list(dict.fromkeys(group.place for group in measured))
    rows = [
        row
        for place in places
        for row in _rows([group for group in measured if group.place == place], titles)
    ]
    return f"{markdown(['', *titles.values(), 'seeds'], rows)}\n\nEvery seed: {', '.join(links)}."


def _rows(groups: Sequence[Group], metrics: Collection[str]) -> Iterator[list[str]]:
    """Yields a row for each condition on a task that has a value, and those of random actions.

    A share that is 0 in all runs and for random actions is written without an interval.
    """
    beside = dict(rows_beside("random", "random actions", groups, metrics))
    values = {
        metric: [value for group in groups for value in group.final(metric)] for metric in metrics
    }
    never = {
        metric
        for metric in filter(is_share, metrics)
        if not any(values[metric]) and not any(any(row[metric]) for row in beside.values())
    }
    for group in groups:
        seeds = f"{len(group.runs)}"
        if len(group.runs) < len(group.seeds):
            seeds += f" of {len(group.seeds)}"
        cells = [cell(group, metric) for metric in metrics]
        cells = [
            "0" if m in never and text else text for m, text in zip(metrics, cells, strict=True)
        ]
        if any(cells):
            yield [f"{group.label}, {group.place}", *cells, seeds]
    for title, row in beside.items():
        # Equal values are those of the same episodes.
        cells = [mean(c, share=is_share(m) and len(set(c)) > 1) for m, c in row.items()]
        yield [f"{title}, {groups[0].place}", *cells, f"{max(map(len, row.values()))}"]


def rows_beside(
    policy: str, title: str, groups: Sequence[Group], metrics: Collection[str]
) -> Iterator[tuple[str, dict[str, list[float | None]]]]:
    """Yields titles of the rows of a simple policy on a task, with its measures over seeds.

    Conditions share a row where the policy plays alike (`Group.played`). Each measure of a row is
    that of the condition that has it on most seeds. Random actions of a controller are choices of
    its skills. A title that two rows would have names their conditions.
    """
    alike: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        if any(metric in measures for measures in group.beside(policy) for metric in metrics):
            skills = policy == "random" and SKILLS in group.played
            label = "random choices of skills" if skills else title
            alike.setdefault((label, f"{group.played}"), []).append(group)
    titles = [label for label, _ in alike]
    for (label, _), same in alike.items():
        names = f" ({'; '.join(group.label for group in same)})" if titles.count(label) > 1 else ""
        yield f"{label}{names}", {metric: _on_most(policy, metric, same) for metric in metrics}


def _on_most(policy: str, metric: str, groups: Sequence[Group]) -> list[float | None]:
    """Returns a measure of a simple policy in the condition that has it on most seeds."""
    by_group = [[measures.get(metric) for measures in group.beside(policy)] for group in groups]
    return max(by_group, key=lambda values: len(values) - values.count(None))


def cell(group: Group, metric: str) -> str:
    """Returns a metric over the seeds of a group with its interval; blank if a seed lacks it."""
    values = group.final(metric)
    if metric in (FIRST, MINUTES, WINDOW):
        return arrivals(values, digits=int(metric == MINUTES))
    return with_least(values) if metric == HELD else mean(values, share=is_share(metric))


def made_by(name: str, groups: Iterable[Group]) -> str:
    """Returns the command of a study, commits and processors, and MuJoCo if not `USUAL_MUJOCO`."""
    command = planned(name).by_hand or f"`music-tf study experiments/studies/{name}.py`"
    made = [run.made_with for group in groups for run in group.runs.values()]
    commits = [c[:7] for text in made for c in re.findall(r"commit (\w{40})", text)]
    machines = [
        machine.replace("(R)", "")
        for text in made
        for machine in re.findall(r"cores? of (?:an )?(\w[^,(]+(?:\(R\)[^,]+)?\w)", text)
    ]
    at = ", ".join(dict.fromkeys(commits))
    title = f"commit{'s' * (len(set(commits)) > 1)}"
    simulators = dict.fromkeys(v for text in made for v in re.findall(r"mujoco ([\d.]+)", text))
    if set(simulators) - {USUAL_MUJOCO}:
        machines.append(f"MuJoCo {', '.join(simulators)}")
    return "; ".join([command, *([f"{title} {at}"] if at else []), *dict.fromkeys(machines)])


def waiting(groups: Iterable[Group]) -> str:
    """Returns a sentence for each task about conditions without runs."""
    names: dict[str, list[str]] = {}
    for group in groups:
        if not group.runs:
            names.setdefault(group.place, []).append(group.label)
    return "".join(f" Not run yet on {at}: {'; '.join(labels)}." for at, labels in names.items())


def value_of(study: str, group: str, metric: str, form: str | None, results: Path) -> str:
    """Returns a metric of a condition on a task, as in its table.

    The form `least` is the mean with the least seed, `random` the metric of random actions.
    """
    groups = {row.name: row for row in groups_of(study, results) if row.study == study and row.runs}
    if group not in groups:
        raise UsageError(f"{study}: no run of {group!r}{suggestion(group, groups)}")
    row = groups[group]
    if form == "random":
        shown = mean([measures.get(metric) for measures in row.beside("random")])
    else:
        shown = with_least(row.final(metric)) if form else cell(row, metric)
    if not shown:
        metrics = {name for measures in row.measured for name in measures}
        raise UsageError(
            f"{study}: a seed of {group!r} lacks {metric!r}{suggestion(metric, metrics)}"
        )
    return shown
