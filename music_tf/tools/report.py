"""One page about one or many runs, which holds all that it shows and needs no network."""

import datetime
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.config.fields import fields_of, show_value
from music_tf.config.names import suggestion
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.files import replace_file
from music_tf.storage.metrics import METRICS
from music_tf.storage.start import start_line
from music_tf.tools.curves import LEADING, LEAST_FOR_BAND, curves_svg
from music_tf.tools.grouping import Run, read_each
from music_tf.tools.lines import REPEATED, by_settings, how_many, in_groups, without_repeats
from music_tf.tools.missing import missing
from music_tf.tools.page import Html, data_uri, document, folded, join, number, table, tag
from music_tf.tools.paths import COLOURS, WIDTH
from music_tf.tools.recorded import MEDIA_TYPES, OURS, Recorded, read_recorded
from music_tf.tools.tables import all_behaviour, behaviour, control, glossary, short, skills

FORMATS = (".html", ".htm")
MOST_FILM_BYTES = 24_000_000
"""Films and pictures on one page; what does not fit is named instead."""
_MEGABYTE = 1e6
_FEW = 3
"""Up to so many runs are shown unfolded."""
_PNG_WIDTH = slice(16, 20)
"""Bytes of a PNG that say how many pixels it has across."""
_TIMES = ("time/epoch", "time/env_steps", "time/updates", "time/elapsed_s")
_COUNTED_TOO = "Steps and minutes count those of the runs that a run started from."


def write_report(runs: Sequence[Path], out: Path) -> list[str]:
    """Writes a page with settings, curves, behaviour and films of runs, which it only reads.

    Args:
        runs: Run directories, also of runs still going; one given twice is shown once.
        out: A file ending in .html; it appears when it is complete.

    Returns:
        The paths of runs that are damaged and left out.

    Raises:
        UsageError: No run that can be read, or not a file name for a page.
        EnvironmentFault: The file cannot be written.
    """
    if not runs:
        raise UsageError("RUN: expected one or more runs, got none")
    if out.suffix.lower() not in FORMATS or os.path.isdir(out):
        raise UsageError(
            f"--out: expected a file that ends in {' or '.join(FORMATS)}, got {str(out)[:200]!r}"
            + suggestion(out.suffix, FORMATS)
        )
    different = {path.resolve(): path for path in runs}.values()
    recorded, damaged = read_each(different, read_recorded)
    page = render(recorded)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, page)
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error.strerror})") from error
    return list(damaged)


def render(runs: Sequence[Recorded]) -> bytes:
    """Returns the page about at least one run."""
    title = runs[0].label if len(runs) == 1 else f"{len(runs)} runs: {_kinds(runs)}"
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    films = _films_that_fit(runs)
    return document(
        title,
        tag(
            "header",
            tag("p", "music_tf", class_="mark"),
            tag("h1", title),
            tag("p", runs[0].state if len(runs) == 1 else f"as of {now}", class_="quiet"),
            _tiles(runs),
        ),
        tag(
            "main",
            _overview(runs) if len(runs) > 1 else "",
            _curves(by_settings([run.curves for run in runs])),
            *(
                _run(run, films, f"run-{index}", len(runs))
                for index, run in enumerate(runs, start=1)
            ),
            glossary(runs),
        ),
        tag("footer", f"music-tf report, {now}. This page loads nothing from elsewhere."),
    )


def _kinds(runs: Iterable[Recorded]) -> str:
    return "; ".join(dict.fromkeys(run.curves.group for run in runs))


def _tiles(runs: Sequence[Recorded]) -> Html:
    """Returns the few numbers that a reader wants first."""
    steps = sum(run.taken("time/env_steps") for run in runs)
    seconds = sum(run.taken("time/elapsed_s") for run in runs)
    of = "of all runs together"
    if len(runs) == 1:
        earlier = runs[0].before.get("time/env_steps")
        of = f"and {number(earlier)} before it started" if earlier else ""
    tiles = [
        ("environment steps", number(steps), of),
        ("training", f"{seconds / 60.0:,.1f} min", f"{steps / max(seconds, 1.0):,.0f} steps/s"),
    ]
    if len(runs) == 1:
        tiles = [*_leading_tile(runs[0]), *tiles]
    return tag(
        "div",
        *(
            tag("div", tag("b", value), tag("span", name), tag("small", note), class_="tile")
            for name, value, note in tiles
        ),
        class_="tiles",
    )


def _leading_tile(run: Recorded) -> list[tuple[str, str, str]]:
    ours = {**{name: run.last(name) for name in LEADING}, **run.behaviour()}
    leading = next((name for name in LEADING if ours.get(name) is not None), None)
    if leading is None:
        return []
    others = [
        f"{policy} {number(metrics.get(leading))}"
        for policy, metrics in run.measured().policies.items()
        if policy != OURS
    ]
    return [(short(leading), number(ours[leading]), ", ".join(others))]


def _overview(runs: Sequence[Recorded]) -> Html:
    """Returns the table of all runs, and how they and simple policies behave."""
    head = ["run", "state", "steps", "minutes", "directory"]
    started = any(run.before for run in runs)
    rows = [
        [
            tag("th", tag("a", run.label, href=f"#run-{index}"), scope="row"),
            run.state,
            number(run.last("time/env_steps")),
            f"{(run.last('time/elapsed_s') or 0.0) / 60.0:,.1f}",
            run.path.name,
        ]
        for index, run in enumerate(runs, start=1)
    ]
    return tag(
        "section",
        tag("h2", "Runs"),
        table(head, rows, "texts"),
        tag("p", _COUNTED_TOO, class_="quiet") if started else "",
        tag("h2", "Behaviour of all runs"),
        tag(
            "p",
            "Of the newest evaluation of each, over as many episodes as that had.",
            class_="quiet",
        ),
        all_behaviour(runs),
        missing(runs),
    )


def _curves(runs: Sequence[Run]) -> Html:
    """Returns learning curves: those of behaviour at once, all others folded."""
    runs, repeats = without_repeats(runs)
    groups = in_groups(runs)
    names = [
        name
        for name in METRICS
        if name not in _TIMES
        and any(np.isfinite(run.columns.get(name, np.zeros(0))).any() for run in runs)
    ]
    leading = [name for name in names if name.startswith("eval/")]
    others = [name for name in names if name not in leading]
    if not names:
        return tag("section", tag("h2", "Learning"), tag("p", "No epoch is over yet."))
    return tag(
        "section",
        tag("h2", "Learning"),
        _legend(groups),
        tag("p", f"Left out, {REPEATED}: {'; '.join(repeats)}.", class_="note") if repeats else "",
        _panels(groups, leading),
        folded(f"{len(others)} more curves", _panels(groups, others)) if others else "",
    )


def _legend(groups: Mapping[str, Sequence[Run]]) -> Html:
    lines = [
        tag(
            "li",
            tag("i", style=f"background:{COLOURS[index % len(COLOURS)]}"),
            label if len(members) == 1 else f"{label} ({how_many(members)})",
        )
        for index, (label, members) in enumerate(groups.items())
    ]
    if sum(map(len, groups.values())) == 1:
        return Html("")
    most = max(map(len, groups.values()))
    band = f", from {LEAST_FOR_BAND} on with its 95 % bootstrap interval"
    said = (
        f"Thick: interquartile mean of several runs{band if most >= LEAST_FOR_BAND else ''}, as "
        "far as all of them have come. Thin: each of them."
    )
    return join(
        tag("ul", *lines, class_="legend"), tag("p", said, class_="quiet") if most > 1 else ""
    )


def _panels(groups: Mapping[str, Sequence[Run]], metrics: Sequence[str]) -> Html:
    figures = [
        tag(
            "figure",
            tag("figcaption", tag("b", name), " ", METRICS[name]),
            Html(curves_svg(groups, name)),
        )
        for name in metrics
    ]
    return tag("div", *figures, class_="panels")


def _run(run: Recorded, films: Mapping[Path, bytes], anchor: str, runs: int) -> Html:
    """Returns all there is about one run; folded where there are many of them."""
    parts = [
        *(tag("p", note, class_="note") for note in run.notes),
        behaviour(run),
        skills(run),
        control(run),
        _paths(run),
        _films(run, films),
        missing([run]) if runs == 1 else "",
        _settings(run),
        _provenance(run),
    ]
    if runs == 1:
        return tag("section", *parts, id=anchor)
    title = join(tag("b", run.label), f" {run.path.name}, {run.state}")
    return folded(title, *parts, id=anchor, class_="run", open=runs <= _FEW)


def _paths(run: Recorded) -> Html:
    found = run.paths()
    pictures = [
        tag(
            "figure",
            tag("img", src=data_uri("image/png", png), alt=f"object paths at step {steps}"),
            tag("figcaption", f"after {number(steps)} steps"),
        )
        for steps, png in found.items()
    ]
    if not pictures:
        return Html("")
    wide = any(int.from_bytes(png[_PNG_WIDTH]) > WIDTH for png in found.values())
    return join(
        tag("h3", "Where the object went, from above"),
        tag("div", *pictures, class_="pictures wide" if wide else "pictures"),
    )


def _films(run: Recorded, films: Mapping[Path, bytes]) -> Html:
    shown = [_film(path, films[path]) for path in run.films if path in films]
    left_out = [
        tag(
            "p",
            f"{path.name} is left out: with it the films of this page would exceed "
            f"{MOST_FILM_BYTES / _MEGABYTE:.0f} MB. It lies in {path.parent}.",
            class_="note",
        )
        for path in run.films
        if path not in films
    ]
    if not run.films:
        return Html("")
    return join(tag("h3", "Films"), tag("div", *shown, class_="films"), *left_out)


def _film(path: Path, content: bytes) -> Html:
    kind = MEDIA_TYPES[path.suffix.lower()]
    address = data_uri(kind, content)
    if kind.startswith("video/"):
        shown = tag("video", src=address, controls=True, loop=True, muted=True, playsinline=True)
    else:
        shown = tag("img", src=address, alt=path.name)
    return tag("figure", shown, tag("figcaption", path.name))


def _films_that_fit(runs: Iterable[Recorded]) -> dict[Path, bytes]:
    """Reads films in order, except those that would make the page larger than it may be."""
    films: dict[Path, bytes] = {}
    room = MOST_FILM_BYTES
    for path in (path for run in runs for path in run.films):
        if path.stat().st_size <= room:
            films[path] = path.read_bytes()
            room -= len(films[path])
    return films


def _settings(run: Recorded) -> Html:
    """Returns the settings that are not the recipe's own, and all of them folded."""
    stored = run.stored
    changed = [
        [tag("code", own.name), show_value(own.value), show_value(usual.value), own.documentation]
        for own, usual in run.changed()
    ]
    every = [
        [tag("code", field.name), show_value(field.value), field.documentation]
        for field in fields_of(stored.config)
    ]
    usual = f"{stored.recipe} ({stored.preset}) on {stored.config.env_id}"
    return join(
        tag("h3", "Settings"),
        tag("pre", f"music-tf train {shlex.join(stored.arguments)}"),
        tag("p", start_line(stored.init_from)) if stored.init_from is not None else "",
        table(["setting", "here", "recipe", "meaning"], changed, "texts")
        if changed
        else tag("p", f"All are those of {usual}."),
        folded(
            f"All {len(every)} settings", table(["setting", "value", "meaning"], every, "texts")
        ),
    )


def _provenance(run: Recorded) -> Html:
    """Returns where and with what the run was made."""
    record = run.record
    versions = record.get("versions")
    resumes = record.get("resumes")
    rows = {
        "directory": run.path,
        "started": record.get("time"),
        "resumed": f"{len(resumes)} times" if isinstance(resumes, list) and resumes else None,
        "commit": record.get("commit"),
        "machine": _joined(record, "host", "processor", "cores"),
        "ranks and workers": _joined(record, "ranks", "workers"),
        "MPI": record.get("mpi"),
        **(versions if isinstance(versions, dict) else {}),
    }
    shown = [[tag("th", name, scope="row"), str(said)] for name, said in rows.items() if said]
    return folded("Versions, machine and commit", table(["", ""], shown, "texts"))


def _joined(record: Mapping[str, Any], *names: str) -> str:
    return ", ".join(
        f"{record[name]} {name}" if isinstance(record[name], int) else str(record[name])
        for name in names
        if record.get(name)
    )
