"""Content of a page about runs, which needs no network; `report.html.j2` has layout and words."""

import base64
import contextlib
import datetime
import itertools
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from music_tf import recipes
from music_tf.config.fields import fields_of, show_value
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.files import read_at_most, read_json
from music_tf.measures.behaviour import direction
from music_tf.reading.command import changes_as_typed
from music_tf.reading.stored import CONFIG_NAME, StoredRun, read_run, stored_env_id
from music_tf.runs.key_metrics import shortfalls, without_unpaid
from music_tf.storage.checkpoint import labels
from music_tf.storage.lock import refuse_if_in_use
from music_tf.storage.metrics import JUDGED, METRICS
from music_tf.storage.results import NoEpochError
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.storage.warm_start import start_line, taken_before
from music_tf.storage.worlds import COLUMNS, read_worlds
from music_tf.tools import curves
from music_tf.tools.adaptation_pictures import PICTURE, adaptation_svg, curves_of
from music_tf.tools.drawing import COLOURS, appearing
from music_tf.tools.object_paths import WIDTH

FORMATS = (".html", ".htm")
MOST_FILM_BYTES = 24_000_000
"""Most bytes of films and pictures on a page; others are only named."""
MEDIA_TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}
OURS, RANDOM = "ours", "random"
PATHS = re.compile(r"paths(?:_(\d{1,15}))?\.png")
"""File names of pictures of the object's paths, with the environment steps."""
WAYS = {
    f"skill/d{axis}_m": f"mean way along {axis} from the object's first to its last position"
    for axis in "xyz"
}
IN_WORLDS = ("return", "length", "success_rate", "spread", "hausdorff", "moved")
"""Columns that are shown for each skill in each stage of a changing world."""
EPISODES = "episodes"
COUNTED = {EPISODES: "how many a row is a mean of; of a run that adapts, visits to each task"}
MEANINGS = {**COUNTED, **METRICS, **WAYS, **{name: COLUMNS[name] for name in IN_WORLDS}}
_ORDER = tuple(dict.fromkeys((EPISODES, *curves.LEADING, *MEANINGS)))
"""Names of metrics, the most telling first."""
_LARGEST_JSON, _LARGEST_PICTURE = 20_000_000, 5_000_000
_PNG, _PNG_WIDTH = b"\x89PNG\r\n\x1a\n", slice(16, 20)
"""First bytes of a PNG, and the bytes with its width in pixels."""
_CONTROL = "measures of control"
_TIMES = {"time/epoch", "time/env_steps", "time/updates", "time/elapsed_s", "time/wall_s"}
_SMALL, _LARGE, _HUGE = 1e-3, 1e4, 1e15

Rows = dict[str, dict[str, float]]
"""Metrics of policies, or of skills, by label."""


class Measured(NamedTuple):
    """Metrics of our policy and of simple ones on the same episodes."""

    policies: Rows
    epoch: float
    """Epoch of our policy; -1 if unknown."""
    episodes: Any


class Recorded(NamedTuple):
    """The content of a run directory, which is only read."""

    path: Path
    stored: StoredRun
    record: Mapping[str, Any]
    """All of `config.json`: versions, commit, host and ranks too."""
    evaluation: Mapping[str, Any]
    """`evaluation.json`; empty without one."""
    evaluated: Measured
    """From `evaluation.json`, by `music-tf evaluate`."""
    trained: Measured
    """From `summary.json`, at the end of training."""
    curves: curves.RunCurves
    """Columns of `metrics.csv`; none before the end of the first epoch."""
    before: Mapping[str, float]
    """Steps and seconds of the source of a warm start, by column; included in `curves`."""
    films: Sequence[Path]
    in_use: bool
    has_checkpoint: bool
    notes: Sequence[str]
    """What was not learned, and faults of unreadable files, for the reader of the page."""

    @property
    def measured(self) -> Measured:
        """The newer of the evaluation and the measurement at the end of training."""
        both = [measured for measured in (self.evaluated, self.trained) if measured.policies]
        return max(both, key=lambda measured: measured.epoch, default=self.trained)

    @property
    def behaviour(self) -> dict[str, float]:
        """Our policy's newest metrics: evaluated, or of a later epoch of training."""
        policies, epoch, episodes = self.measured
        later = {name: at for name, at in self.last(epoch).items() if name.startswith("eval/")}
        if later:
            return later | {EPISODES: float(self.stored.config.evaluation.episodes)}
        return policies.get(OURS, {}) | ({EPISODES: episodes} if curves.is_number(episodes) else {})

    def last(self, after: float = -math.inf) -> dict[str, float]:
        """Returns the newest value of each metric in the epochs after a given one."""
        columns = self.curves.columns
        counted = columns.get("time/epoch", np.zeros(self.curves.epochs)) > after
        values = {name: column[counted & np.isfinite(column)] for name, column in columns.items()}
        return {name: float(column[-1]) for name, column in values.items() if column.size}

    def without_source(self, metric: str) -> float:
        earlier = self.before.get(metric, 0.0)
        return self.last().get(metric, earlier) - earlier

    def rows(self, kind: str) -> Rows:
        return rows_of(self.evaluation.get(kind))

    def skills(self) -> Rows:
        """Returns metrics of each evaluated skill and of random actions, arrows for long ways."""
        listed = self.evaluation.get("skills")
        skills = {}
        for row in listed if isinstance(listed, list) else ():
            if isinstance(row, dict):
                way = row.get("shift_m")
                ways = dict(zip(WAYS, way if isinstance(way, list) else (), strict=False))
                metrics = curves.numbers_in(row.get("metrics")) | curves.numbers_in(ways)
                x, y, _ = (metrics.get(name, 0.0) for name in WAYS)
                arrow = direction(x, y).replace("-", "")
                skills[f"skill {row.get('skill')} {arrow}".rstrip()] = metrics
        random = self.evaluated.policies.get(RANDOM)
        return skills | {RANDOM: random} if skills and random else skills

    def worlds(self) -> Rows:
        worlds = {}
        with contextlib.suppress(EnvironmentFault):  # the page then lacks this table
            for row in read_worlds(self.path):
                skill = f"skill {row['skill']:.0f}" if "skill" in row else "policy"
                label = f"{skill} in stage {row['world']:.0f}, epoch {row['epoch']:.0f}"
                worlds[label] = {name: row[name] for name in IN_WORLDS if name in row}
        return worlds

    def settings(self) -> list[tuple[str, str, str, str]]:
        """Returns name, value, the recipe's value, and meaning of every setting."""
        config = self.stored.config
        default = recipes.resolve(self.stored.recipe, self.stored.preset, config.env_id)
        usual = {
            field.name: field.value
            for term in config.rewards.values()
            for field in fields_of(type(term)())
        }
        usual |= {field.name: field.value for field in fields_of(default)}
        return [
            (name, show_value(value), show_value(usual[name]), meaning)
            for name, _, value, meaning in fields_of(config)
        ]

    @property
    def adapts(self) -> bool:
        return self.stored.config.agent.inference is not None

    def adaptation(self) -> list[tuple[str, str]]:
        adaptation = self.evaluation.get("adaptation")
        explored = adaptation.get("explored") if isinstance(adaptation, dict) else None
        first = explored if type(explored) is int and explored > 0 else 1
        drawn = []
        for name, title in (("returns", "return"), ("success", "share of visits that succeed")):
            if curves_by_part := curves_of(adaptation, name):
                svg = adaptation_svg(curves_by_part, first, f"{name} {self.path}")
                drawn.append((title, svg))
        return drawn

    def visits(self) -> str:
        png = _content(self.path / "videos" / PICTURE, _LARGEST_PICTURE)
        return _address(Path(PICTURE), png) if png.startswith(_PNG) else ""

    def pictures(self) -> list[tuple[str, str, bool]]:
        """Returns the first, middle and last picture of paths: data URL, caption, whether wide."""
        earlier = round(self.before.get("time/env_steps", 0.0))
        pictures = []
        for file in _media(self.path) + _media(self.path / "videos"):
            name = PATHS.fullmatch(file.name)
            png = _content(file, _LARGEST_PICTURE) if name else b""
            if name and png.startswith(_PNG):
                steps = int(name[1]) + earlier if name[1] else math.inf
                caption = f"after {number(steps)} steps" if name[1] else "at the newest evaluation"
                wide = int.from_bytes(png[_PNG_WIDTH]) > WIDTH
                pictures.append((steps, _address(file, png), caption, wide))
        pictures.sort()
        shown = sorted({0, len(pictures) // 2, len(pictures) - 1}) if pictures else ()
        return [pictures[at][1:] for at in shown]

    def lacks(self) -> list[str]:
        """Returns what `music-tf evaluate` would add to the page; nothing without a checkpoint."""
        several = len(self.stored.config.acting_skills) > 1
        parts = {
            "a comparison with simple policies": self.measured.policies,
            "a table of skills": self.skills() or not several,
            _CONTROL: self.rows("control") or self.adapts,
            "curves of adaptation": self.adaptation() or not self.adapts,
        }
        return [name for name, part in parts.items() if self.has_checkpoint and not part]


def write_report(runs: Sequence[Path], out: Path) -> dict[str, UsageError]:
    """Writes a page about runs, when complete; returns the faults of unreadable ones by path."""
    different = {path.resolve(): path for path in runs}.values()
    recorded, unread = curves.read_each(different, read_recorded)
    page = render(recorded)
    with appearing(out) as draft:
        draft.write_bytes(page)
    return unread


def read_recorded(path: Path) -> Recorded:
    stored = read_run(path, stored_env_id(path))  # imports no module that it names
    notes: list[str] = []
    drawn, before = curves.described(path, {}), dict[str, float]()
    try:
        before = taken_before(stored.init_from, path)
        drawn = curves.load(path)
    except NoEpochError:
        pass
    except UsageError as error:
        notes.append(str(error))
    in_use = True
    with contextlib.suppress(UsageError):
        refuse_if_in_use(path)
        in_use = False
    files = (CONFIG_NAME, EVALUATION_NAME, SUMMARY_NAME)
    record, evaluation, summary = (_read_json(path / name, notes) for name in files)
    evaluated_at = curves.numbers_in(evaluation.get("checkpoint")).get("epoch", -1.0)
    trained_for = curves.numbers_in(summary).get("epochs", -1.0)
    films = [film for film in _media(path / "videos") if not PATHS.fullmatch(film.name)]
    saved = path / "checkpoints"
    name = f"{stored.recipe} on {stored.config.env_id}, seed {stored.config.seed}"
    run = Recorded(
        path,
        stored,
        record,
        evaluation,
        _measured(stored, evaluation, "policies", evaluated_at),
        _measured(stored, summary, "evaluation", trained_for),
        drawn._replace(name=name, folder=str(path)),
        before,
        [film for film in films if film.name != PICTURE],
        in_use,
        saved.is_dir() and bool(labels(os.listdir(saved))),
        notes,
    )
    notes += shortfalls(stored.config, run.last())
    return run


def _measured(stored: StoredRun, record: Mapping[str, Any], name: str, epoch: float) -> Measured:
    policies = without_unpaid(rows_of(record.get(name)), stored.config)
    return Measured(policies, epoch, record.get(EPISODES))


def rows_of(content: Any) -> Rows:
    """Returns labelled metrics of an untrusted file; only numbers are kept."""
    return {
        label: curves.numbers_in(metrics)
        for label, metrics in (content.items() if isinstance(content, dict) else ())
        if isinstance(metrics, dict)
    }


def render(runs: Sequence[Recorded]) -> bytes:
    """Returns the page about at least one run; texts of runs are escaped."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"number": number, "by_column": by_column, "start_line": start_line}
    pages.filters["words"] = curves.words_of
    pages.filters["shell"] = shlex.join
    films, room = {}, MOST_FILM_BYTES
    for path in (path for run in runs for path in run.films):
        if content := _content(path, room):
            films[path] = _address(path, content)
            room -= len(content)
    drawn, repeats = curves.without_repeats(curves.by_settings([run.curves for run in runs]))
    telling = {name for run in runs for name in telling_columns(run)} - _TIMES
    shown = {name for name in telling if any(run.has(name) for run in drawn)}
    shown -= set(map(curves.random_column, shown))  # lines in the panels of others
    shown = {name for name in shown if _moves(name, drawn)}
    tables = [rows for run in runs for rows in (run.measured.policies, run.skills())]
    explained = {name for rows in tables for row in rows.values() for name in row}
    page = pages.get_template("report.html.j2").render(
        runs=runs,
        now=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        steps=sum(run.without_source("time/env_steps") for run in runs),
        seconds=sum(run.without_source("time/elapsed_s") for run in runs),
        films=films,
        most_megabytes=MOST_FILM_BYTES // 10**6,
        curves=curves,
        groups=curves.in_groups(drawn),
        colours=COLOURS,
        repeats=repeats,
        metrics={name: MEANINGS[name] for name in _ORDER if name in shown},
        behaviour=[name for name in _ORDER if name in shown & leading_columns(runs)],
        judged=JUDGED,
        policies=all_policies(runs),
        missing=missing(runs),
        glossary={name: meaning for name, meaning in MEANINGS.items() if name in explained},
    )
    return page.encode("utf-8", "replace")


def _moves(metric: str, runs: Sequence[curves.RunCurves]) -> bool:
    """Whether a metric has several values, or a single one, which may still change."""
    values = np.concatenate([run.columns.get(metric, np.zeros(0)) for run in runs])
    known = values[np.isfinite(values)]
    return known.size == 1 or bool(np.ptp(known) > 0.0)


def telling_columns(run: Recorded) -> set[str]:
    """Returns the columns of a run that have numbers, without an unrewarded return of zero."""
    finite = {name: column[np.isfinite(column)] for name, column in run.curves.columns.items()}
    ends = {
        str(end): {name: float(end(column)) for name, column in finite.items() if column.size}
        for end in (np.min, np.max)
    }
    return {name for row in without_unpaid(ends, run.stored.config).values() for name in row}


def leading_columns(runs: Sequence[Recorded]) -> set[str]:
    """Returns the columns that are drawn first: behaviour, and those that show learning."""
    behaviour = {name for name in METRICS if name.startswith("eval/")}
    for run in runs:
        for term in run.stored.config.rewards.values():
            for metric in term.key_metrics(run.stored.config) if term.counts else ():
                behaviour |= {metric.metric, metric.random}
    return behaviour


def all_policies(runs: Sequence[Recorded]) -> Rows:
    """Returns the newest metrics of each run by its label, then those of simple policies."""
    simple: Rows = {}
    for run in runs:
        for policy, metrics in run.measured.policies.items():
            if policy != OURS:
                config = run.stored.config
                where = [config.env_id, *changes_as_typed(config.evaluated_env)]
                name = f"{policy} on {' '.join(where)}"
                simple[name] = {**metrics, **simple.get(name, {})}  # goals add success to some
    labelled = curves.own_labels([run.curves for run in runs])
    return {label: run.behaviour for label, run in zip(labelled, runs, strict=True)} | simple


def missing(runs: Sequence[Recorded]) -> list[tuple[str, str]]:
    """Returns what all pages together lack, each with the command that adds it."""
    lacks = [run.lacks() for run in runs]
    names = dict.fromkeys(itertools.chain.from_iterable(lacks))
    evaluate = ["evaluate", "--full"] if _CONTROL in names else ["evaluate"]
    saved = [run for run in runs if run.has_checkpoint]
    unfilmed = [run for run in saved if {film.suffix for film in run.films} <= {".png"}]
    lacking = [run for run, parts in zip(runs, lacks, strict=True) if parts]
    wanted = (("films", ["play"], unfilmed), (" and ".join(names), evaluate, lacking))
    commands = []
    for adds, (verb, *options), some in wanted:
        if len(some) > 1:
            command = " ".join(["music-tf", verb, "RUN", *options])  # RUN stands for each of them
            commands.append((f"{adds} of {len(some)} runs", command))
        elif some:
            path, here, env_id = some[0].path, Path.cwd(), some[0].stored.config.env_id
            typed = str(path.relative_to(here) if path.is_relative_to(here) else path)
            module = ["--env-id", env_id] if ":" in env_id else []
            commands.append((adds, shlex.join(["music-tf", verb, typed, *options, *module])))
    return commands


def by_column(rows: Rows) -> list[tuple[str, str, list[tuple[str, int]]]]:
    """Returns a table by column: name, meaning, and the numbers with bars in per cent."""
    present = {name for row in rows.values() for name in row}
    columns = []
    for name in [*filter(present.__contains__, _ORDER), *sorted(present - set(_ORDER))]:
        values = [row.get(name) for row in rows.values()]
        most = max(0.0, *(value for value in values if value is not None))
        bars = [round(100.0 * max(0.0, value or 0.0) / (most or 1.0)) for value in values]
        cells = list(zip(_written(values), bars, strict=True))
        columns.append((name, MEANINGS.get(name, ""), cells))
    return columns


def number(value: Any) -> str:
    return _written([value])[0]


def _written(values: Sequence[Any]) -> list[str]:
    numbers = [value for value in values if curves.is_number(value)]
    most = max(map(abs, numbers), default=0.0)
    form = "z.3f" if _SMALL <= most < _LARGE else "z.3g"
    if most < _HUGE and all(value == int(value) for value in numbers):
        form = "z,.0f"
    return [format(value, form) if curves.is_number(value) else "-" for value in values]


def _read_json(path: Path, notes: list[str]) -> dict[str, Any]:
    """Returns a JSON object; an empty one, with a note, if the file is damaged."""
    try:
        content = read_json(path, _LARGEST_JSON)
        if not isinstance(content, dict):
            raise ValueError("expected a JSON object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        notes.append(f"{path.name} cannot be read: {str(error)[:120]}")
        return {}
    return content


def _media(directory: Path) -> list[Path]:
    paths = sorted(directory.glob("[!.]*")) if directory.is_dir() else []
    return [path for path in paths if path.suffix.lower() in MEDIA_TYPES and path.is_file()]


def _content(path: Path, room: int) -> bytes:
    """Returns a file's content; empty if it is larger than `room` or cannot be read."""
    try:
        return read_at_most(path, room)
    except OSError:
        return b""


def _address(path: Path, content: bytes) -> str:
    return f"data:{MEDIA_TYPES[path.suffix.lower()]};base64,{base64.b64encode(content).decode()}"
