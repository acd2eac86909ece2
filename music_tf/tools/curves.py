"""Learning curves of one or many runs: one colour per group of seeds, with its uncertainty.

From five seeds on, the line is their interquartile mean, as Agarwal et al. recommend for few runs
(2021, arXiv:2108.13264), with its 95 % bootstrap interval as a band and every seed as a thin line.
Fewer seeds have a line each.
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
from typing import Any, NamedTuple, TypeVar

import numpy as np

from music_tf.config.fields import fields_of, show_value
from music_tf.config.key_metrics import INFORMATION
from music_tf.config.names import FEW, few, suggestion
from music_tf.errors import ModuleNotAllowed, UsageError
from music_tf.reading import stored
from music_tf.storage.metrics import CSV_NAME, METRICS
from music_tf.storage.results import BEFORE, NoEpochError, group_and_seed, read_result
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
_TRIMMED = 0.25
"""Share of the runs that the interquartile mean leaves out at each end."""
_WIDTH, _HEIGHT = 6.2, 4.0
"""Inches of a picture for each panel, without the legend below."""


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
        columns = read_result(path).counted_in_all()
        return RunCurves(path.stem, group, columns, study, str(path.parent), seed)
    before = taken_before(stored.read_record(path, "config").get("init_from"), path)
    if not (path / CSV_NAME).exists():
        raise NoEpochError(f"{path}: holds no epoch of a run yet")
    counted = read_result(path / CSV_NAME)._replace(details={BEFORE: before})
    return described(path, counted.counted_in_all())


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
            differing = sorted(
                (name != _PRESET, sharing[name, value], place, f"{name} {value}")
                for place, (name, value) in enumerate(settings.items())
                if sharing[name, value] < len(kinds)
            )
            parts.append([text for *_, text in differing])
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


def summary_of(curves: Sequence[Curve]) -> tuple[Curve, Floats, Floats]:
    """Returns the interquartile mean of curves over their common range, and its 95 % interval."""
    from scipy import stats  # noqa: PLC0415 - heavy

    first = max(curve.across[0] for curve in curves)
    last = max(first, min(curve.across[-1] for curve in curves))
    across = np.linspace(first, last, 200)
    values = np.stack([np.interp(across, curve.across, curve.up) for curve in curves])  # [R, P]
    middle = stats.trim_mean(values, _TRIMMED, axis=0)
    resampled = stats.bootstrap(
        (values,),
        lambda sample, axis: stats.trim_mean(sample, _TRIMMED, axis=axis),
        n_resamples=2000,
        method="percentile",
        rng=0,
    )
    return Curve(across, middle), *resampled.confidence_interval


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
        title = textwrap.fill(f"{metric}: {METRICS.get(metric, '')}", 68)
        panel.set_title(title, fontsize="medium")
    shown = [lines[label] for label in groups if label in lines]
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
    """Draws a metric of all groups, without a title; returns the line of each group that has it."""
    lines: dict[str, Any] = {}
    for (label, members), colour in zip(groups.items(), itertools.cycle(COLOURS), strict=False):
        having = [run for run in members if curve_of(run, metric, axis).up.size]
        curves = [curve_of(run, metric, axis) for run in having]
        if not curves:
            continue
        named = {"color": colour, "label": with_count(label, having)}
        if len(curves) < LEAST_FOR_BAND:
            for curve in curves:
                marker = "o" if curve.up.size == 1 else ""
                (line,) = panel.plot(*curve, marker=marker, **named)
                named["label"] = "_"  # matplotlib leaves it out of legends
                lines.setdefault(label, line)
            continue
        for curve in curves:  # all behind the lines with a label
            panel.plot(*curve, color=colour, alpha=0.5, linewidth=1.0, zorder=1.8)
        middle, low, high = summary_of(curves)
        band = {"color": colour, "alpha": 0.18, "linewidth": 0.0, "zorder": 1.6}
        panel.fill_between(middle.across, low, high, **band)
        (lines[label],) = panel.plot(*middle, **named)
    panel.set_xlabel(AXES[axis][2])
    panel.grid(alpha=0.3)
    panel.set_xlim(left=0.0)
    if metric.endswith("_rate"):
        panel.set_ylim(-0.02, 1.02)
    return lines
