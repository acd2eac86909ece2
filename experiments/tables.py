"""Tables and pictures from the stored results alone: `make results`.

A study in experiments/studies says what it shows. This fills what stands in README.md and
docs/**/*.md between

    <!-- results: STUDY -->
    <!-- /results -->

with a table of that study (several names: of all of them, with the columns of the first), and
between

    <!-- value: STUDY/CONDITION_TASK METRIC -->
    <!-- /value -->

with the mean of a metric over seeds. All that was measured, seed by seed, goes to
experiments/results/STUDY/README.md, and the pictures of studies are drawn again where what they
show has changed. `--check` only says what differs (exit code 1).
"""

import argparse
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.intervals import arrivals, difference, mean, number, with_least
from experiments.stored import (
    FIRST,
    HELD,
    MINUTES,
    RESULTS,
    ROOT,
    STUDIES,
    Group,
    evaluated,
    followed,
    groups_of,
    is_share,
    planned,
    policies_beside,
)
from music_tf.cli.exits import guarded, leave
from music_tf.config.names import suggestion
from music_tf.errors import EXIT_BUG, EXIT_DONE, UsageError
from music_tf.measures.behaviour import direction
from music_tf.storage.metrics import METRICS
from music_tf.storage.results import WORLDS
from music_tf.storage.worlds import ENDS
from music_tf.tools.curves import draw_curves
from music_tf.tools.curves import load as load_curve
from music_tf.tools.study import Picture

IMAGES = ROOT / "docs" / "images"
ORIGINS = IMAGES / "made_from.json"
"""What each picture was drawn from, and its own content, as digests."""
_BLOCK = re.compile(r"(<!-- results: ([\w ]+) -->\n).*?(<!-- /results -->)", re.DOTALL)
_VALUE = re.compile(r"(<!-- value: (\w+)/(\S+) (\S+) -->)[^`\n]*?(<!-- /value -->)")
_STAGES = 6
"""Columns of a table of what is followed on the way."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


# --- tables on pages ----------------------------------------------------------------------


def shown(names: Sequence[str], page: Path, results: Path) -> str:
    """Returns the table of one study or several, and how its runs were made.

    Raises:
        UsageError: There is no such study, or no run of one has a metric that its table shows.
    """
    titles = planned(names[0]).shown
    if not titles:
        raise UsageError(f"{names[0]}: does not say what its table shows (shown={{...}})")
    groups = [group for name in names for group in groups_of(name, results)]
    measured = [group for group in groups if group.runs]
    notes = [_origin_of(name, groups, page, results) for name in names]
    if not measured:
        return "\n\n".join(notes)
    for metric in titles:
        if not any(value is not None for group in measured for value in group.found(metric)):
            known = [name for group in measured for one in group.measured for name in one]
            hint = suggestion(metric, {*known, *METRICS})
            raise UsageError(f"{names[0]}: no run has {metric!r}, which its table shows{hint}")
    places = list(dict.fromkeys(group.place for group in measured))
    rows = [
        row
        for place in places
        for row in _rows([group for group in measured if group.place == place], titles)
    ]
    return "\n\n".join([markdown(["", *titles.values(), "seeds"], rows), *notes])


def _rows(groups: Sequence[Group], metrics: Collection[str]) -> Iterator[list[str]]:
    """Yields a row for each condition on a task, and one for random actions.

    A share that is 0 in all runs and under random actions is written without an interval.
    """
    most = max(groups, key=lambda group: len(group.runs))
    beside = most.beside("random")
    values = {
        metric: [one for group in groups for one in group.found(metric)] for metric in metrics
    }
    never = {
        metric
        for metric in filter(is_share, metrics)
        if not any(values[metric]) and not any(one.get(metric) for one in beside)
    }
    for group in groups:
        seeds = f"{len(group.runs)}"
        if len(group.runs) < len(group.task.seeds):
            seeds += f" of {len(group.task.seeds)}"
        cells = [cell(group, metric) for metric in metrics]
        cells = ["0" if m in never and one else one for m, one in zip(metrics, cells, strict=True)]
        yield [f"{group.label}, {group.place}", *cells, seeds]
    if any(metric in one for one in beside for metric in metrics):
        cells = [mean([one.get(metric) for one in beside]) for metric in metrics]
        yield [f"random actions, {most.place}", *cells, f"{len(beside)}"]


def cell(group: Group, metric: str) -> str:
    """Returns a metric over the seeds of a group with its interval; blank where one lacks it."""
    values = group.found(metric)
    if metric in (FIRST, MINUTES):
        return arrivals(values, digits=int(metric == MINUTES))
    return with_least(values) if metric == HELD else mean(values, share=is_share(metric))


def _origin_of(name: str, groups: Sequence[Group], page: Path, results: Path) -> str:
    """Returns how the runs of a study were made, where each of them stands, and what is missing."""
    study = planned(name)
    command = study.by_hand or f"`music-tf study experiments/studies/{name}.py`"
    own = [group for group in groups if group.study == name]
    runs = [run for group in own for run in group.runs.values()]
    if not runs:
        return f"Not measured yet: {command}."
    made = [run.made_with for run in runs]
    commits = dict.fromkeys(c[:7] for text in made for c in re.findall(r"commit (\w{40})", text))
    machines = dict.fromkeys(
        machine.replace("(R)", "")
        for text in made
        for machine in re.findall(r"cores? of (?:an )?(\w[^,(]+(?:\(R\)[^,]+)?\w)", text)
    )
    link = os.path.relpath(results / name / "README.md", page.parent)
    waiting = [f"{group.label} on {group.place}" for group in own if not group.runs]
    missing = f" Not run yet: {'; '.join(waiting)}." if waiting else ""
    at = f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}"
    return f"{'; '.join([command, at, *machines])}; [every seed]({link}).{missing}"


def value_of(study: str, group: str, metric: str, results: Path) -> str:
    """Returns the mean of a metric over the seeds of a condition on a task.

    Raises:
        UsageError: There is no such group, or one of its seeds lacks the metric.
    """
    groups = {one.name: one for one in groups_of(study, results) if one.study == study and one.runs}
    if group not in groups:
        raise UsageError(f"{study}: no run of {group!r}{suggestion(group, groups)}")
    found = cell(groups[group], metric)
    if not found:
        known = {name for one in groups[group].measured for name in one}
        raise UsageError(
            f"{study}: a seed of {group!r} lacks {metric!r}{suggestion(metric, known)}"
        )
    return found


def filled(text: str, page: Path, results: Path = RESULTS) -> str:
    """Returns a page with the tables and values that its markers name.

    Raises:
        UsageError: A marker names no study, or its results lack what the page states; with the
            page and the line.
    """

    def guard(found: re.Match[str], make: Any, *given: Any) -> str:
        try:
            return str(make(*given, results))
        except UsageError as fault:
            line = found.string.count("\n", 0, found.start()) + 1
            row = found.string.splitlines()[line - 1].strip()[:100]
            raise UsageError(f"{page.name}, line {line}, {row!r}: {fault}") from fault

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}{guard(found, shown, found[2].split(), page)}\n{found[3]}"

    def value(found: re.Match[str]) -> str:
        return f"{found[1]}{guard(found, value_of, found[2], found[3], found[4])}{found[5]}"

    return _VALUE.sub(value, _BLOCK.sub(table, text))


# --- the README beside the results of a study ----------------------------------------------


def readme(name: str, results: Path = RESULTS) -> str:
    """Returns all that was measured of a study, seed by seed."""
    study = planned(name)
    groups = [group for group in groups_of(name, results) if group.runs]
    parts = [
        f"# {name}\n\n{study.question} Role: {study.role}. `make results` writes this page.",
        _origin_of(name, groups, results / name / "README.md", results).rpartition("; ")[0] + ".",
        "Means have half of their 95 % interval (Student's t), differences Welch's; shares at a "
        "bound have counts of seeds. Many measures are compared: an interval that leaves out zero "
        "by little may be chance. [What each measure is](../../../docs/metrics.md).",
    ]
    for task in study.tasks:
        here = [group for group in groups if group.task.env_id == task.env_id]
        if not here:
            continue
        parts += [f"## {here[0].place}", *_differences(here, study.compared_with)]
        parts += [_progress(here, metric) for metric in study.followed]
        for group in here:
            if group.study == name:
                parts += [f"### {group.label}, {group.place}", _by_seed(group)]
                parts += [*_each_skill(group), *_each_world(group)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _by_seed(group: Group) -> str:
    """Returns a row for each measure: its mean, every seed, and simple policies of the first."""
    measured = group.measured
    others = policies_beside([*group.runs.values()])
    beside = [group.beside(policy)[0] for policy in others]
    names = dict.fromkeys(name for one in (*measured, *beside) for name in one)
    rows = [
        [
            f"`{name}`",
            cell(group, name) if any(name in one for one in measured) else "",
            *(_exactly(one.get(name)) for one in (*measured, *beside)),
        ]
        for name in names
    ]
    return markdown(["", "mean", *(f"seed {seed}" for seed in group.runs), *others], rows)


def _exactly(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if math.isfinite(value) else "never"


def _differences(groups: Sequence[Group], base: str) -> list[str]:
    """Returns how far conditions lie from one of them on a task, a column each."""
    sources = [group for group in groups if group.condition.name == base]
    others = [group for group in groups if group.condition.name != base]
    if not sources or not others:
        return []
    theirs = sources[0].measured
    names = [name for name in theirs[0] if not name.startswith(("spent/", "level/"))]
    columns = [[one.get(name) for one in theirs] for name in names]
    rows = [
        [
            f"`{name}`",
            *(
                difference([one.get(name) for one in group.measured], own, share=is_share(name))
                for group in others
            ),
        ]
        for name, own in zip(names, columns, strict=True)
    ]
    titles = [f"{group.label} minus {sources[0].label}" for group in others]
    return [markdown(["", *titles], rows)]


def _progress(groups: Sequence[Group], metric: str) -> str:
    """Returns a metric of each condition after numbers of steps, those of a start included."""
    runs = [run for group in groups for run in group.runs.values() if evaluated(run, metric).size]
    if not runs:
        return ""
    known = runs[0].in_all("time/env_steps")[np.isfinite(runs[0].columns[metric])]
    stages = known[np.linspace(0, len(known) - 1, min(_STAGES, len(known))).astype(int)]
    rows = []
    for group in groups:
        if any(evaluated(run, metric).size for run in group.runs.values()):
            found = [followed(run, metric, stages) for run in group.runs.values()]
            cells = [mean(column, share=is_share(metric)) for column in zip(*found, strict=True)]
            rows.append([group.label, *cells])
    titles = [f"{count / 1e3:g} thousand steps" for count in stages]
    return markdown([f"`{metric}` after", *titles], rows)


def _each_skill(group: Group) -> Iterator[str]:
    """Yields what each skill of each run does, and which way it moves the object."""
    skills = [
        (seed, one) for seed, run in group.runs.items() for one in run.details.get("skills", ())
    ]
    if skills:
        names = dict.fromkeys(name for _, one in skills for name in one["metrics"])
        rows = []
        for seed, one in skills:
            way = one.get("shift_m")
            moved = ", ".join(f"{part:+.2f}" for part in way) if way else ""
            cells = [_exactly(one["metrics"].get(name)) for name in names]
            toward = direction(*way[:2]) if way else ""
            rows.append([str(seed), str(one["skill"]), *cells, moved, toward])
        titles = [f"`{name}`" for name in names]
        yield markdown(["seed", "skill", *titles, "mean way (m)", "from above"], rows)


def _each_world(group: Group) -> Iterator[str]:
    """Yields what each skill of each run does in each stage of its world, first and last.

    Both are by the weights of then; a skill that rests does the same.
    """
    rows = []
    for seed, run in group.runs.items():
        played: dict[tuple[float, float], list[dict[str, float]]] = {}
        for row in run.details.get(WORLDS, ()):
            played.setdefault((row.get("skill", -1.0), row["world"]), []).append(row)
        for (skill, world), found in sorted(played.items()):
            first, last = found[0], found[-1]
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


# --- pictures -----------------------------------------------------------------------------


def pictures() -> dict[str, tuple[str, Picture]]:
    """Returns the pictures of all studies, and whose they are, by the name of their file."""
    return {
        f"{picture.name}.png": (path.stem, picture)
        for path in sorted(STUDIES.glob("*.py"))
        for picture in planned(path.stem).pictures
    }


def files_of(name: str, picture: Picture, results: Path = RESULTS) -> list[Path]:
    """Returns the stored results that a picture shows."""
    return [
        file
        for group in groups_of(name, results)
        if not picture.tasks or group.task.env_id in picture.tasks
        if not picture.conditions
        or group.study != name
        or group.condition.name in picture.conditions
        for file in group.files.values()
    ]


def outdated_pictures() -> list[str]:
    """Returns the pictures whose results, or whose own content, are others than noted."""
    noted = json.loads(ORIGINS.read_text(encoding="utf-8")) if ORIGINS.exists() else {}
    found = {name: _digests(name, *of) for name, of in pictures().items()}
    return [name for name, digests in found.items() if noted.get(name) != digests]


def _digests(name: str, study: str, picture: Picture) -> dict[str, str | None]:
    """Returns digests of what a picture shows, and of the picture."""
    titles = [METRICS[metric] for metric in picture.metrics]
    told = hashlib.sha256(repr((picture, titles)).encode())
    for path in files_of(study, picture):
        told.update(path.read_bytes())
    path = IMAGES / name
    drawn = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return {"results": told.hexdigest(), "picture": drawn}


def draw(names: Sequence[str]) -> None:
    """Draws pictures, and notes what each was drawn from."""
    known = pictures()
    for name in names:
        study, picture = known[name]
        curves = [load_curve(path) for path in files_of(study, picture)]
        each = picture.lines == "seeds"
        draw_curves(curves, picture.metrics, picture.axis, IMAGES / name, each)
    if names:
        digests = {name: _digests(name, *of) for name, of in known.items()}
        ORIGINS.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


# --- all of it ----------------------------------------------------------------------------


def pages() -> list[Path]:
    """Returns the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def studies_in(results: Path) -> list[str]:
    """Returns the studies with stored results."""
    return sorted({path.parent.name for path in results.glob("*/*_seed*.csv")})


def outdated() -> dict[Path, str]:
    """Returns the pages that should read otherwise, and how.

    Raises:
        UsageError: A stored result is missing or damaged, or a page states what none has.
    """
    wanted = {RESULTS / name / "README.md": readme(name) for name in studies_in(RESULTS)}
    wanted |= {page: filled(page.read_text(encoding="utf-8"), page) for page in pages()}
    return {
        page: text
        for page, text in wanted.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes what has changed, or only says it, and returns the exit code.

    Raises:
        UsageError: As `outdated`.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    given = parser.parse_args(arguments)
    changed, drawn = outdated(), outdated_pictures()
    for path in [*changed, *(IMAGES / name for name in drawn)]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if given.check:
        return EXIT_BUG if changed or drawn else EXIT_DONE
    for page, text in changed.items():
        page.write_text(text, encoding="utf-8")
    draw(drawn)
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
