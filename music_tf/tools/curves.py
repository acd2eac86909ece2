"""Learning curves of one or many runs: one colour per group of seeds, with its uncertainty.

The line of several seeds is their interquartile mean, as Agarwal et al. recommend for few runs
(2021, arXiv:2108.13264), from five seeds on with its 95 % bootstrap interval as a band. Every seed
is a thin line, unless there are many groups. Grey lines are random actions, and a known level.
"""

import contextlib
import io
import itertools
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np

from music_tf.config.fields import fields_of, show_value
from music_tf.config.key_metrics import INFORMATION, LEVELS
from music_tf.config.names import FEW, few, suggestion
from music_tf.errors import ModuleNotAllowed, UsageError
from music_tf.files import read_json
from music_tf.reading import stored
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import BEFORE, FINAL, NoEpochError, group_and_seed, read_result
from music_tf.storage.run_directory import SUMMARY_NAME
from music_tf.storage.warm_start import digest_of, parts_taken, taken_before
from music_tf.tools.drawing import COLOURS, appearing
from music_tf.types import Floats

Read = TypeVar("Read")

FORMATS = (".png", ".svg", ".pdf")
AXES = {
    "steps": ("time/env_steps", 1e-3, "environment steps (thousands)"),
    "minutes": ("time/elapsed_s", 1.0 / 60.0, "minutes of training"),
    "episodes": ("time/episodes", 1.0, "training episodes"),
}
LEADING = "eval/success_rate", "eval/object_comotion_m", INFORMATION, "eval/return", "train/mean_q"
"""Default metrics: the first of them that a run has is drawn."""
REPEATED = "another run of the same seed is drawn"
LEAST_FOR_BAND = 5
"""Least runs of a group for a mean with a band. For four runs, the 95 % bootstrap interval would go
from the lowest to the highest curve."""
_PRESET = "preset"
_LARGEST_JSON, _LARGEST = 20_000_000, 1e300
_TRIMMED = 0.25
"""Share of the runs that the interquartile mean leaves out at each end."""
_WIDTH, _HEIGHT = 6.2, 4.0
"""Inches of a picture for each panel, without the legend below."""
_MOST_WITH_SEEDS = 4
"""Most groups of a panel in which each seed is drawn, too."""
_GREY = "#7a7a7a"
_REFERENCE: Mapping[str, Any] = MappingProxyType({"color": _GREY, "linewidth": 1.2, "zorder": 1.5})
RANDOM, LEVEL = "random actions", "level"


class RunCurves(NamedTuple):
    """The metrics of a run, and how it is labelled and grouped."""

    name: str
    group: str
    """Runs of one group differ in their seed only and share a line."""
    columns: Mapping[str, Floats]
    """Metrics by name, a value per epoch; nan if missing."""
    settings: Mapping[str, str] = MappingProxyType({})
    """Settings that runs on one line share; for a copied CSV file the name of its folder."""
    folder: str = ""
    seed: int | None = None
    source: str = ""
    """Digest of the checkpoint of a warm start; empty without one."""
    random: Mapping[str, float] = MappingProxyType({})
    """Metrics of random actions, as they were measured with the policy in the end."""
    levels: Mapping[str, float] = MappingProxyType({})  # thresholds of its study

    @property
    def epochs(self) -> int:
        return max((values.size for values in self.columns.values()), default=0)

    def has(self, metric: str) -> bool:
        return bool(np.isfinite(self.columns.get(metric, np.zeros(0))).any())


class Curve(NamedTuple):
    """Values of an axis and of a metric of one run, without the epochs that lack either."""

    across: Floats
    up: Floats


def load(path: Path) -> RunCurves:
    """Reads a run directory or a copy of its `metrics.csv`; adds the steps of a warm start."""
    if not os.path.isdir(path):
        group, seed = group_and_seed(path)
        study = {"of": path.resolve().parent.name}
        result = read_result(path)
        run = RunCurves(path.stem, group, result.counted_in_all(), study, str(path.parent), seed)
        return run._replace(random=numbers_in(result.details.get(FINAL, {}).get("random")))
    before = taken_before(stored.read_record(path, "config").get("init_from"), path)
    if not (path / CSV_NAME).exists():
        raise NoEpochError(f"{path}: holds no epoch of a run yet")
    counted = read_result(path / CSV_NAME)._replace(details={BEFORE: before})
    random: dict[str, float] = {}
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # none yet, or damaged
        random = numbers_in(read_json(path / SUMMARY_NAME, _LARGEST_JSON)["evaluation"]["random"])
    return described(path, counted.counted_in_all())._replace(random=random)


def numbers_in(content: Any) -> dict[str, float]:
    """Returns the numbers of an untrusted JSON object by name."""
    items = content.items() if isinstance(content, dict) else ()
    return {name: float(value) for name, value in items if is_number(value)}


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a number of a size that can be shown."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and -_LARGEST < value < _LARGEST


def words_of(metric: str) -> str:
    """Returns a metric in words, as in `Co-motion, m` for `eval/object_comotion_m`."""
    group, _, name = metric.rpartition("/")
    if group == "reward":
        name = " reward, ".join(name.rsplit("_", 1))
    name, unit = (name[:-2], ", m") if name.endswith("_m") else (name, "")
    name = name.removeprefix("object_").replace("comotion", "co-motion")
    words = name.replace("_heldout", ", held out").replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}{unit}"


def described(path: Path, columns: Mapping[str, Floats]) -> RunCurves:
    """Describes a run for plots; only runs of equal settings and warm start share a line."""
    record = stored.read_record(path, "recipe", "config")
    start, values = record.get("init_from"), stored.flatten(record["config"])
    with contextlib.suppress(ModuleNotAllowed):  # reading imports no module that a file names
        config = stored.read_run(path, stored.stored_env_id(path)).config
        values = {field.name: field.value for field in fields_of(config)}
    group = f"{record['recipe']}, {str(values.get('env_id')).rpartition('/')[2]}"
    settings = {
        _PRESET: str(record.get(_PRESET)),
        "takes over": ",".join(parts_taken(start)) or "nothing",
        **{
            name: show_value(value)
            for name, value in values.items()
            if name not in ("seed", *stored.MAY_CHANGE_ON_RESUME)
        },
    }
    seed = values.get("seed") if isinstance(values.get("seed"), int) else None
    name, folder = f"{group}, {path.name}", str(path.parent)
    return RunCurves(name, group, columns, settings, folder, seed, digest_of(start))


def read_each(
    paths: Iterable[Path], read: Callable[[Path], Read]
) -> tuple[list[Read], dict[str, UsageError]]:
    """Reads runs; returns the readable ones, and the faults of others by path."""
    runs: list[Read] = []
    faults: dict[str, UsageError] = {}
    for path in paths:
        try:
            runs.append(read(path))
        except UsageError as fault:
            faults[str(path)] = fault
    if not runs:
        raise next(iter(faults.values()))
    return runs, faults


def load_begun(paths: Sequence[Path]) -> tuple[list[RunCurves], list[str], dict[str, UsageError]]:
    """Returns runs with an epoch, paths of runs without one, and the faults of others."""
    runs, faults = read_each(paths, load)
    early = [path for path, fault in faults.items() if isinstance(fault, NoEpochError)]
    return runs, early, {path: fault for path, fault in faults.items() if path not in early}


def by_settings(runs: Sequence[RunCurves]) -> list[RunCurves]:
    """Returns runs of equal settings by a name: preset, then the settings that fewest share."""

    def key(run: RunCurves) -> Hashable:
        return run.group, frozenset(pair for pair in run.settings.items() if pair[0] != _PRESET)

    labels: dict[Hashable, str] = {}
    for group in {run.group for run in runs}:
        kinds = {key(run): run.settings for run in reversed(runs) if run.group == group}
        sharing = Counter(pair for settings in kinds.values() for pair in settings.items())
        parts = []
        for settings in kinds.values():
            differing = [pair for pair in settings.items() if sharing[pair] < len(kinds)]
            differing.sort(key=lambda pair: (pair[0] != _PRESET, sharing[pair]))
            parts.append([f"{name} {value}" for name, value in differing])
        for most in range(FEW, max(FEW, *map(len, parts)) + 1):
            named = [", ".join([group, few(part, most)]) if part else group for part in parts]
            if len(set(named)) == len(named):
                break
        labels |= dict(zip(kinds, named, strict=True))
    return [run._replace(group=labels[key(run)]) for run in runs]


def without_repeats(runs: Sequence[RunCurves]) -> tuple[list[RunCurves], list[str]]:
    """Returns each seed of a line once, the run of most epochs, and labels of all others."""
    longest: dict[Hashable, RunCurves] = {}
    for number, run in enumerate(runs):
        key: Hashable = number if run.seed is None else (run.group, run.source, run.seed)
        if key not in longest or run.epochs > longest[key].epochs:
            longest[key] = run
    kept = {id(run) for run in longest.values()}
    labelled = zip(own_labels(runs), runs, strict=True)
    repeats = [label for label, run in labelled if id(run) not in kept]
    return [run for run in runs if id(run) in kept], repeats


def own_labels(runs: Sequence[RunCurves]) -> list[str]:
    namesakes = Counter(run.name for run in runs)
    return [run.name if namesakes[run.name] == 1 else f"{run.name} ({run.folder})" for run in runs]


def in_groups(runs: Sequence[RunCurves], each: bool = False) -> dict[str, list[RunCurves]]:
    """Returns the runs of each line by its label; with `each`, every run has its own line."""
    groups: dict[str, list[RunCurves]] = {}
    for label, run in zip(own_labels(runs), runs, strict=True):
        groups.setdefault(label if each else run.group, []).append(run)
    return groups


def with_count(label: str, runs: Sequence[RunCurves]) -> str:
    """Returns the label of a line with the number of its runs, or seeds if all differ."""
    seeds = {run.seed for run in runs}
    kind = "seeds" if None not in seeds and len(seeds) == len(runs) else "runs"
    return label if len(runs) == 1 else f"{label} ({len(runs)} {kind})"


def choose_metrics(runs: Sequence[RunCurves], metrics: Sequence[str], axis: str) -> list[str]:
    """Returns the metrics to draw, after checking that some run has each of them over the axis."""
    present = dict.fromkeys(name for run in runs for name in run.columns if run.has(name))
    for name in metrics:
        if name not in present:
            raise UsageError(
                f"--metric: none of the runs has {name[:80]!r}{suggestion(name, present)}"
            )
    likely = list(metrics) or [name for name in LEADING if name in present]
    if not likely:
        raise UsageError("RUN: these runs hold no evaluation yet; name a column with --metric")

    def over(axis: str) -> list[str]:
        return [name for name in likely if any(curve_of(run, name, axis).up.size for run in runs)]

    chosen = list(metrics) or (over(axis) or likely)[:1]
    for name in chosen:
        if name not in over(axis):
            others = [f"\nchoose --axis {other}" for other in AXES if name in over(other)]
            raise UsageError(
                f"--axis {axis}: none of the runs has {AXES[axis][0]} where it has {name}"
                + "".join(others)
            )
    return chosen


def left_out(runs: Sequence[RunCurves], metrics: Sequence[str], axis: str) -> dict[str, list[str]]:
    lacking: dict[str, list[str]] = {}
    for label, run in zip(own_labels(runs), runs, strict=True):
        if not any(curve_of(run, metric, axis).up.size for metric in metrics):
            measured = any(run.has(metric) for metric in metrics)
            lacks = AXES[axis][0] if measured else " or ".join(metrics)
            lacking.setdefault(f"no {lacks}", []).append(label)
    return lacking


def curve_of(run: RunCurves, metric: str, axis: str) -> Curve:
    column, unit, _ = AXES[axis]
    if not {column, metric} <= run.columns.keys():
        return Curve(np.zeros(0), np.zeros(0))
    across, up = run.columns[column], run.columns[metric]
    finite = np.isfinite(across) & np.isfinite(up)
    return Curve(unit * across[finite], up[finite])


def summary_of(curves: Sequence[Curve]) -> tuple[Curve, Sequence[Floats]]:
    """Returns the interquartile mean of curves over their common range; its 95 % interval, too.

    There is no interval of fewer than `LEAST_FOR_BAND` curves, and a single one is its own mean.
    """
    if len(curves) == 1:
        return curves[0], ()
    from scipy import stats  # noqa: PLC0415 - heavy

    first = max(curve.across[0] for curve in curves)
    last = max(first, min(curve.across[-1] for curve in curves))
    across = np.linspace(first, last, 200)
    values = np.stack([np.interp(across, curve.across, curve.up) for curve in curves])  # [R, P]
    middle = Curve(across, stats.trim_mean(values, _TRIMMED, axis=0))
    if len(curves) < LEAST_FOR_BAND:
        return middle, ()
    resampled = stats.bootstrap(
        (values,),
        lambda sample, axis: stats.trim_mean(sample, _TRIMMED, axis=axis),
        n_resamples=2000,
        method="percentile",
        rng=0,
    )
    return middle, resampled.confidence_interval


def draw_curves(
    runs: Sequence[RunCurves], metrics: Sequence[str], axis: str, out: Path, each: bool = False
) -> list[str]:
    """Writes a panel per metric, without any the first of `LEADING`; returns the metrics."""
    chosen = choose_metrics(runs, metrics, axis)
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load, after all checks

    groups = in_groups(runs, each)
    figure = Figure(figsize=(_WIDTH * len(chosen), _HEIGHT), layout="constrained")
    panels = figure.subplots(1, len(chosen), squeeze=False)[0]
    lines: dict[str, Any] = {}
    for panel, metric in zip(panels, chosen, strict=True):
        lines = _draw_panel(panel, groups, metric, axis) | lines
        panel.set_title(words_of(metric))
        panel.set_ylabel(metric, fontsize="small", color=_GREY)
    last = {RANDOM, LEVEL}  # the others from the highest end to the lowest
    ends = {label: (label in last, -line.get_ydata()[-1]) for label, line in lines.items()}
    shown = [lines[label] for label in sorted(ends, key=ends.__getitem__)]
    labels = [textwrap.fill(line.get_label(), 60) for line in shown]
    named = [label.replace("$", r"\$") for label in labels]  # not to be typeset as mathematics
    place = {"fontsize": "small", "frameon": False, "loc": "outside lower center"}
    column = figure.legend(shown, named, **place)
    columns = max(1, int(figure.bbox.width / column.get_window_extent().width))
    column.remove()
    legend = figure.legend(shown, named, ncols=columns, **place)
    figure.set_figheight(_HEIGHT + legend.get_window_extent().height / figure.dpi)
    with appearing(out) as draft:
        figure.savefig(draft, dpi=120)
    return chosen


def curves_svg(groups: Mapping[str, Sequence[RunCurves]], metric: str) -> str:
    """Returns a panel as SVG for a page; line n of the groups has colour n of `COLOURS`."""
    return svg_of(lambda panel: _draw_panel(panel, groups, metric, "steps"), metric)


def svg_of(draw: Callable[[Any], object], salt: str) -> str:
    """Returns what `draw` draws on a panel as SVG; `salt` makes its ids unique on the page."""
    import matplotlib as mpl  # noqa: PLC0415 - a second to load
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    drawn = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure = Figure(figsize=(3.8, 2.2))
        panel = figure.add_axes((0.16, 0.23, 0.81, 0.68))
        draw(panel)
        panel.ticklabel_format(axis="y", scilimits=(-3, 5))
        panel.spines[["top", "right"]].set_visible(False)
        silent = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(drawn, format="svg", transparent=True, metadata=silent)
    text = drawn.getvalue()
    return text[text.index("<svg") :].replace("#000000", "currentColor")


def _draw_panel(
    panel: Any, groups: Mapping[str, Sequence[RunCurves]], metric: str, axis: str
) -> dict[str, Any]:
    """Draws a metric of all groups, without a title; returns the lines of a legend by label."""
    lines: dict[str, Any] = {}
    for (label, members), colour in zip(groups.items(), itertools.cycle(COLOURS), strict=False):
        having = [run for run in members if curve_of(run, metric, axis).up.size]
        curves = [curve_of(run, metric, axis) for run in having]
        if not curves:
            continue
        middle, interval = summary_of(curves)
        if interval:
            band = {"color": colour, "alpha": 0.18, "linewidth": 0.0, "zorder": 1.6}
            panel.fill_between(middle.across, *interval, **band)
        for curve in curves if len(curves) > 1 and len(groups) <= _MOST_WITH_SEEDS else ():
            panel.plot(*curve, color=colour, alpha=0.35, linewidth=1.0, zorder=1.8)
        named = {"color": colour, "label": with_count(label, having)}
        (lines[label],) = panel.plot(*middle, marker="o" if middle.up.size == 1 else "", **named)
        if (chance := _draw_random(panel, having, metric, axis)) is not None:
            lines[RANDOM] = chance
    if metric in LEVELS and lines:
        usual, what = LEVELS[metric]
        level = next(iter(groups.values()))[0].levels.get(metric, usual)
        lines[LEVEL] = panel.axhline(level, label=f"{what} from {level:g} on", ls=":", **_REFERENCE)
    panel.set_xlabel(AXES[axis][2])
    panel.grid(alpha=0.3)
    panel.set_xlim(left=0.0)
    if metric.endswith("_rate"):
        panel.set_ylim(-0.02, 1.02)
    elif panel.dataLim.y0 >= 0.0:
        panel.set_ylim(bottom=0.0)
    return lines


def _draw_random(panel: Any, runs: Sequence[RunCurves], metric: str, axis: str) -> Any:
    """Draws a metric of random actions: its column, else what was measured in the end."""
    dashed = {"linestyle": "--", "label": RANDOM, **_REFERENCE}
    curves = [curve_of(run, random_column(metric), axis) for run in runs]
    if all(curve.up.size for curve in curves):
        return panel.plot(*summary_of(curves)[0], **dashed)[0]
    known = [run.random[metric] for run in runs if metric in run.random]
    return panel.axhline(np.mean(known), **dashed) if known else None


def random_column(metric: str) -> str:
    """Returns the column of a metric for random actions, which few metrics have."""
    paired = f"{metric.removesuffix('_heldout')}_random"
    return "adapt/random_return" if metric.startswith("adapt/return") else paired
