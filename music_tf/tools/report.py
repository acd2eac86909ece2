"""One page about one or many runs, which holds all that it shows and needs no network.

Here stands what is on the page; `report.html.j2` says where, in which words, and how it looks.
"""

import base64
import datetime
import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import jinja2
import numpy as np

from music_tf import recipes
from music_tf.config.fields import fields_of, show_value
from music_tf.config.names import suggestion
from music_tf.config.stored import CONFIG_NAME, StoredRun, read_run, stored_env_id
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.measures.behaviour import direction
from music_tf.storage.checkpoint import labels
from music_tf.storage.files import read_at_most, replace_file
from music_tf.storage.lock import refuse_if_in_use
from music_tf.storage.metrics import CONTROL, CSV_NAME, METRICS
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.storage.start import start_line, taken_before
from music_tf.tools import curves
from music_tf.tools.paths import COLOURS, WIDTH

FORMATS = (".html", ".htm")
MOST_FILM_BYTES = 24_000_000
"""Films and pictures on one page; what does not fit is named instead."""
MEDIA_TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}
OURS, RANDOM = "ours", "random"
PATHS = re.compile(r"paths(?:_(\d{1,15}))?\.png")
"""Pictures of the object's paths in a run directory or its videos, with the steps by then."""
WAYS = {
    f"skill/d{axis}_m": f"metres along {axis} from the object's first to its last position, mean"
    for axis in "xyz"
}
"""What is added to the metrics of each skill."""
MEANINGS = {**METRICS, **WAYS}
_LARGEST_JSON = 20_000_000
_LARGEST_PICTURE = 5_000_000
_PICTURES = 3
_PNG, _PNG_WIDTH = b"\x89PNG\r\n\x1a\n", slice(16, 20)
"""How a PNG begins, and its bytes that say how many pixels it has across."""
_TIMES = ("time/epoch", "time/env_steps", "time/updates", "time/elapsed_s")
_OF_CHANCE = ("_chance", "_null", "_null_std", "_p")
"""Endings of the measures of control that say what chance gives for another one."""
_SMALL, _LARGE, _HUGE, _LARGEST = 1e-3, 1e4, 1e15, 1e300


class Measured(NamedTuple):
    """How our policy and simple ones behaved on the same episodes."""

    policies: dict[str, Mapping[str, Any]]
    """Metrics by policy, `OURS` among them."""
    epoch: float
    """When ours was measured; -1 where that is not known."""


class Table(NamedTuple):
    """Numbers, each with a bar that compares it to the largest of its column."""

    columns: list[tuple[str, str]]
    """Name and meaning of each."""
    rows: list[tuple[str, list[tuple[str, int]]]]
    """A label, and for each column the number as text and the length of its bar in per cent."""


class Picture(NamedTuple):
    """Where the object went, from above."""

    address: str
    steps: int | None
    """Environment steps that were taken by then; None where that is not known."""
    wide: bool


class Recorded(NamedTuple):
    """What a run directory tells about its run, read without touching it."""

    path: Path
    stored: StoredRun
    record: Mapping[str, Any]
    """All of `config.json`: versions, commit, host and ranks too."""
    summary: Mapping[str, Any]
    """`summary.json`; empty while there is none."""
    evaluation: Mapping[str, Any]
    """`evaluation.json`; empty while there is none."""
    curves: curves.Run
    """Columns of `metrics.csv`; none before the first epoch is over."""
    before: Mapping[str, float]
    """What the runs had taken that it started from, by column; `curves` counts it."""
    films: Sequence[Path]
    in_use: bool
    """Whether a job holds the directory."""
    has_checkpoint: bool
    """Whether there is something to play and to evaluate."""
    notes: Sequence[str]
    """What could not be read, for the reader of the page."""

    @property
    def state(self) -> str:
        """How far the run has come, in words."""
        wanted = self.stored.config.epochs
        if self.in_use:
            return f"still going, {self.epochs} of {wanted} epochs"
        if self.summary.get("epochs") == self.epochs:
            return f"finished, {self.epochs} epochs"
        return f"not finished, {self.epochs} of {wanted} epochs"

    @property
    def command(self) -> str:
        """What was typed to train it."""
        return shlex.join(["music-tf", "train", *self.stored.arguments])

    @property
    def start(self) -> str:
        """Where it started, in words; empty where it began with random weights."""
        return "" if self.stored.init_from is None else start_line(self.stored.init_from)

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
        newest = {name: self._newest(name) for name in METRICS if name.startswith("eval/")}
        later = {name: at[1] for name, at in newest.items() if at is not None and at[0] > epoch}
        return later or policies.get(OURS, {})

    def leading(self) -> tuple[str, str, list[str]]:
        """Returns the metric that matters most, its newest value, and that of simple policies.

        The name is empty where there is none.
        """
        ours = {**{name: self.last(name) for name in curves.LEADING}, **self.behaviour()}
        name = next((name for name in curves.LEADING if ours.get(name) is not None), "")
        policies = self.measured().policies.items()
        others = [f"{one} {number(metrics.get(name))}" for one, metrics in policies if one != OURS]
        return name, number(ours.get(name)), others

    def skills(self) -> dict[str, Mapping[str, Any]]:
        """Returns what each evaluated skill does, with `WAYS` and an arrow for ways over 5 cm.

        The random policy stands beside them. Nothing without an evaluation of several skills.
        """
        rows = self.evaluation.get("skills")
        found: dict[str, Mapping[str, Any]] = {}
        for row in rows if isinstance(rows, list) else []:
            metrics = row.get("metrics") if isinstance(row, dict) else None
            if isinstance(metrics, dict):
                label, way = f"skill {row.get('skill')}", row.get("shift_m")
                if isinstance(way, list) and len(way) == len(WAYS):
                    metrics = metrics | dict(zip(WAYS, way, strict=True))
                x, y, _ = (metrics.get(name) for name in WAYS)
                if is_number(x) and is_number(y):
                    label = f"{label} {direction(x, y).replace('-', '')}".rstrip()
                found[label] = metrics
        random = self.evaluated().policies.get(RANDOM)
        return found | {RANDOM: random} if found and random else found

    def control(self) -> tuple[list[str], list[tuple[str, ...]]]:
        """Returns the head and the rows of a table of measures, each value beside chance."""
        policies = _policies(self.evaluation.get("control"))
        rows = [
            (short(name), *(_beside_chance(one, name) for one in policies.values()), meaning)
            for name, meaning in CONTROL.items()
            if not name.endswith(_OF_CHANCE)
            and any(is_number(measures.get(name)) for measures in policies.values())
        ]
        return ["measure", *policies, "meaning"], rows

    def settings(self) -> list[tuple[str, str, str]]:
        """Returns name, value and meaning of every setting."""
        fields = fields_of(self.stored.config)
        return [(field.name, show_value(field.value), field.documentation) for field in fields]

    def changed(self) -> list[tuple[str, str, str, str]]:
        """Returns name, value, the recipe's value, and meaning of settings that differ from it."""
        config = self.stored.config
        default = recipes.resolve(self.stored.recipe, self.stored.preset, config.env_id)
        usual = {
            field.name: field
            for term in config.rewards.values()
            for field in fields_of(type(term)())
        }
        usual |= {field.name: field for field in fields_of(default)}
        return [
            (own.name, show_value(own.value), show_value(other.value), own.documentation)
            for own, other in ((own, usual[own.name]) for own in fields_of(config))
            if own.value != other.value
        ]

    def provenance(self) -> dict[str, Any]:
        """Returns where and with what the run was made, what is not known left out."""

        def joined(*names: str) -> str:
            known = [(name, self.record[name]) for name in names if self.record.get(name)]
            counted = (f"{said} {name}" if isinstance(said, int) else said for name, said in known)
            return ", ".join(map(str, counted))

        versions, resumes = self.record.get("versions"), self.record.get("resumes")
        rows = {
            "directory": self.path,
            "started": self.record.get("time"),
            "resumed": f"{len(resumes)} times" if isinstance(resumes, list) and resumes else None,
            "commit": self.record.get("commit"),
            "machine": joined("host", "processor", "cores"),
            "ranks and workers": joined("ranks", "workers"),
            "MPI": self.record.get("mpi"),
            **(versions if isinstance(versions, dict) else {}),
        }
        return {name: said for name, said in rows.items() if said}

    def paths(self) -> list[Picture]:
        """Returns pictures of the object's paths: first, middle and last."""
        earlier = round(self.before.get("time/env_steps", 0.0))
        found = []
        for file in _media(self.path) + _media(self.path / "videos"):
            name = PATHS.fullmatch(file.name)
            png = _content(file, _LARGEST_PICTURE) if name else b""
            if name and png.startswith(_PNG):
                steps = int(name[1]) + earlier if name[1] else None
                wide = int.from_bytes(png[_PNG_WIDTH]) > WIDTH
                found.append(Picture(_address(file, png), steps, wide))
        found.sort(key=lambda picture: math.inf if picture.steps is None else picture.steps)
        shown = np.unique(np.linspace(0, len(found) - 1, _PICTURES).round().astype(int))
        return [found[number] for number in shown] if found else []

    def _newest(self, metric: str) -> tuple[float, float] | None:
        """Returns the last epoch that has a metric, and its value; None where there is none."""
        values = self.curves.columns.get(metric, np.zeros(0))
        epochs = self.curves.columns.get("time/epoch", np.zeros(values.size))
        known = np.flatnonzero(np.isfinite(values))
        return (float(epochs[known[-1]]), float(values[known[-1]])) if known.size else None


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
    recorded, damaged = curves.read_each(different, read_recorded)
    page = render(recorded)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, page)
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error.strerror})") from error
    return list(damaged)


def read_recorded(path: Path) -> Recorded:
    """Reads a run directory, also of a run still going.

    Raises:
        UsageError: It holds no run, or its configuration is damaged.
    """
    stored = read_run(path, stored_env_id(path))  # a module that it names is not imported here
    notes: list[str] = []
    columns: Mapping[str, Any] = {}
    before: Mapping[str, float] = {}
    try:
        before = taken_before(stored.init_from, path)
        columns = curves.columns_of(path, stored) if (path / CSV_NAME).exists() else {}
    except UsageError as error:
        notes.append(str(error))
    try:
        refuse_if_in_use(path)
        in_use = False
    except UsageError:
        in_use = True
    saved = path / "checkpoints"
    name = f"{stored.recipe} on {stored.config.env_id}, seed {stored.config.seed}"
    return Recorded(
        path,
        stored,
        _read_json(path / CONFIG_NAME, notes),
        _read_json(path / SUMMARY_NAME, notes),
        _read_json(path / EVALUATION_NAME, notes),
        curves.as_run(path, stored, columns)._replace(name=name, folder=str(path)),
        before,
        [film for film in _media(path / "videos") if not PATHS.fullmatch(film.name)],
        in_use,
        saved.is_dir() and bool(labels(os.listdir(saved))),
        notes,
    )


def render(runs: Sequence[Recorded]) -> bytes:
    """Returns the page about at least one run; whatever a run says is escaped."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"number": number, "short": short, "table": table}
    films, room = {}, MOST_FILM_BYTES
    for path in (path for run in runs for path in run.films):
        if content := _content(path, room):
            films[path] = _address(path, content)
            room -= len(content)
    drawn, repeats = curves.without_repeats(curves.by_settings([run.curves for run in runs]))
    groups = curves.in_groups(drawn)
    metrics = {
        name: meaning
        for name, meaning in METRICS.items()
        if name not in _TIMES and any(run.has(name) for run in drawn)
    }
    tables = [rows for run in runs for rows in (run.measured().policies, run.skills())]
    explained = {name for rows in tables for row in rows.values() for name in row}
    page = pages.get_template("report.html.j2").render(
        runs=runs,
        now=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        films=films,
        most_megabytes=MOST_FILM_BYTES // 10**6,
        steps=sum(run.taken("time/env_steps") for run in runs),
        seconds=sum(run.taken("time/elapsed_s") for run in runs),
        metrics=metrics,
        behaviour=[name for name in metrics if name.startswith("eval/")],
        legend=[
            (curves.with_count(label, members), COLOURS[line % len(COLOURS)])
            for line, (label, members) in enumerate(groups.items())
        ],
        most_on_a_line=max(map(len, groups.values())),
        least_for_band=curves.LEAST_FOR_BAND,
        panel=lambda metric: curves.curves_svg(groups, metric),
        repeated=curves.REPEATED,
        repeats=repeats,
        policies=all_policies(runs),
        missing=missing(runs),
        glossary={name: meaning for name, meaning in MEANINGS.items() if name in explained},
    )
    return page.encode("utf-8", "replace")


def all_policies(runs: Sequence[Recorded]) -> dict[str, Mapping[str, Any]]:
    """Returns the newest metrics of each run by its label, then those of simple policies."""
    simple: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        for policy, metrics in run.measured().policies.items():
            if policy != OURS:
                name = f"{policy} on {run.stored.config.env_id}"
                simple[name] = {**metrics, **simple.get(name, {})}  # goals add success to some
    labelled = curves.own_labels([run.curves for run in runs])
    return {label: run.behaviour() for label, run in zip(labelled, runs, strict=True)} | simple


def missing(runs: Sequence[Recorded]) -> list[tuple[str, str]]:
    """Returns what a page could show too, each with the command that the reader would run first.

    It is about all the runs together. Nothing can be added to a run without a checkpoint.
    """
    runs = [run for run in runs if run.has_checkpoint]
    comparison, skills = "a comparison with simple policies", "a table of skills"
    lacking = {
        run.path: [
            *([] if run.measured().policies else [comparison]),
            *([skills] if len(run.stored.config.acting_skills) > 1 and not run.skills() else []),
        ]
        for run in runs
    }
    not_evaluated = [run for run in runs if lacking[run.path]]
    not_judged = [run for run in runs if "control" not in run.evaluation]
    evaluation = " and ".join(dict.fromkeys(part for parts in lacking.values() for part in parts))
    control = "measures of control"
    if evaluation and [run.path for run in not_evaluated] == [run.path for run in not_judged]:
        not_evaluated, control = [], f"{evaluation} and, with --full, {control}"
    wanted = [
        ("films", ["play"], [run for run in runs if not run.films]),
        (evaluation, ["evaluate"], not_evaluated),
        (control, ["evaluate", "--full"], not_judged),
    ]
    return [
        (adds if len(some) == 1 else f"{adds} of {len(some)} runs", _command(verb, some))
        for adds, verb, some in wanted
        if some
    ]


def table(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Returns all numbers of labelled metrics, the documented ones first."""
    present = {name for row in rows.values() for name in row if is_number(row[name])}
    names = [name for name in MEANINGS if name in present] + sorted(present - set(MEANINGS))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows.values()]
        most = max(value for value in values if is_number(value))
        shares = [value / most if is_number(value) and most > 0.0 else 0.0 for value in values]
        bars = [round(100.0 * max(0.0, share)) for share in shares]
        columns.append(list(zip(_written(values), bars, strict=True)))
    cells = [list(row) for row in zip(*columns, strict=True)] or [[] for _ in rows]
    named = [(name, MEANINGS.get(name, "")) for name in names]
    return Table(named, list(zip(rows, cells, strict=True)))


def short(metric: str) -> str:
    """Returns a metric's name as the title of a column."""
    return metric.rpartition("/")[2].replace("_", " ")


def number(value: Any) -> str:
    """Returns a number for people to read, and a dash for what is none."""
    return _written([value])[0]


def is_number(value: Any) -> TypeGuard[float]:
    """Tells whether a value from JSON is a number of a size that can be shown."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and -_LARGEST < value < _LARGEST


def _written(values: Sequence[Any]) -> list[str]:
    """Returns the numbers of a column with as many digits as they need together."""
    known = [value for value in values if is_number(value)]
    most = max(map(abs, known), default=0.0)
    form = ".3f" if _SMALL <= most < _LARGE else ".3g"
    if most < _HUGE and all(value == int(value) for value in known):
        form = ",.0f"
    return [format(value, form) if is_number(value) else "-" for value in values]


def _beside_chance(measures: Mapping[str, Any], name: str) -> str:
    value, chance = number(measures.get(name)), measures.get(f"{name}_chance")
    null, deviation, p = (measures.get(f"{name}_{end}") for end in ("null", "null_std", "p"))
    if is_number(null):
        return f"{value} (chance {number(null)} ± {number(deviation)}, p = {number(p)})"
    return f"{value} (chance {number(chance)})" if is_number(chance) else value


def _command(verb: Sequence[str], runs: Sequence[Recorded]) -> str:
    """Returns a command as the reader types it; for several runs RUN stands for each of them."""
    if len(runs) > 1:
        return " ".join(["music-tf", verb[0], "RUN", *verb[1:]])
    path, here, env_id = runs[0].path, Path.cwd(), runs[0].stored.config.env_id
    typed = str(path.relative_to(here) if path.is_relative_to(here) else path)
    module = ["--env-id", env_id] if ":" in env_id else []
    return shlex.join(["music-tf", verb[0], typed, *verb[1:], *module])


def _measured(policies: Any, epoch: Any) -> Measured:
    return Measured(_policies(policies), float(epoch) if is_number(epoch) else -1.0)


def _policies(found: Any) -> dict[str, Mapping[str, Any]]:
    items = found.items() if isinstance(found, dict) else ()
    return {name: metrics for name, metrics in items if isinstance(metrics, dict)}


def _read_json(path: Path, notes: list[str]) -> dict[str, Any]:
    """Returns a JSON object, or an empty one and a note where the file is damaged."""
    try:
        content = json.loads(read_at_most(path, _LARGEST_JSON))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.name} cannot be read: {str(error)[:120]}")
        return {}
    if not isinstance(content, dict):
        notes.append(f"{path.name} cannot be read: expected a JSON object")
        return {}
    return content


def _media(directory: Path) -> list[Path]:
    """Returns the films and pictures in a folder by name, without drafts."""
    found = sorted(directory.glob("[!.]*")) if directory.is_dir() else []
    return [path for path in found if path.suffix.lower() in MEDIA_TYPES and path.is_file()]


def _content(path: Path, room: int) -> bytes:
    """Returns a file's content, empty where it is larger than the room or cannot be read."""
    try:
        return read_at_most(path, room)
    except OSError:
        return b""


def _address(path: Path, content: bytes) -> str:
    """Returns an address that holds the content itself."""
    return f"data:{MEDIA_TYPES[path.suffix.lower()]};base64,{base64.b64encode(content).decode()}"
