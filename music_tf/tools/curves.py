"""Learning curves of one or many runs: one line a group of seeds, with its uncertainty.

The line is the interquartile mean over seeds, the band a 95 % bootstrap interval of it, as
Agarwal et al. recommend for few runs (2021, arXiv:2108.13264), where there are three of them or
more; every seed is drawn thinly behind.
"""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.names import suggestion
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.storage.metrics import METRICS
from music_tf.storage.results import Numbers
from music_tf.tools.grouping import Run
from music_tf.tools.lines import how_many, in_groups, own_labels
from music_tf.tools.paths import COLOURS

FORMATS = (".png", ".svg", ".pdf")
AXES = {
    "steps": ("time/env_steps", 1e-3, "environment steps (thousands)"),
    "minutes": ("time/elapsed_s", 1.0 / 60.0, "minutes of training"),
}
LEADING = ("eval/success_rate", "eval/object_comotion_m", "train/mean_q")
"""What is drawn where no metric is asked for: the first that a run has."""
_POINTS = 200
_RESAMPLES = 2000
_PERCENTILES = (2.5, 97.5)
LEAST_FOR_BAND = 3
"""Runs of a line from which on it has a band: of two it would only repeat them."""
_BAND_ORDER, _SEED_ORDER = 1.6, 1.8
"""In front of the grid, behind all lines with a label."""
_PLAIN_EXPONENTS = (-3, 5)
"""Powers of ten between which numbers beside an axis are written out."""
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_LEGEND_LETTERS = 60
"""In a line of the legend, which would else be wider than its panel."""
_MOST_INSIDE = 4
"""Lines of text in a legend inside of the axes; a longer one stands below them."""
_FIGURE_INCHES = (6.2, 4.0)
"""Width and height of a picture for each panel, without a legend below."""
_PANEL_INCHES = (3.8, 2.2)
_PANEL_PLACE = (0.16, 0.23, 0.81, 0.68)
"""Left, bottom, width and height of the axes in a panel for a page, as shares of it."""


class Curve(NamedTuple):
    """A metric of one run over an axis, without the epochs that lack it."""

    across: Numbers
    up: Numbers


def draw_curves(
    runs: Sequence[Run], metrics: Sequence[str], axis: str, out: Path, each: bool = False
) -> None:
    """Writes a picture with a panel a metric.

    Args:
        runs: At least one.
        metrics: Names of metrics; none draws the first of `LEADING` that a run has.
        axis: A key of `AXES`.
        out: A file with an ending of `FORMATS`.
        each: Gives every run a line of its own, without bands.

    Raises:
        UsageError: No run has one of the metrics, or none over this axis.
        EnvironmentFault: The file cannot be written.
    """
    import matplotlib as mpl  # noqa: PLC0415 - a second to load, after all checks

    chosen = choose_metrics(runs, metrics, axis)
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    groups = in_groups(runs, each)
    width, height = _FIGURE_INCHES
    figure, panels = plt.subplots(
        1, len(chosen), figsize=(width * len(chosen), height), squeeze=False, layout="constrained"
    )
    lines: dict[str, Any] = {}
    for panel, metric in zip(panels[0], chosen, strict=True):
        lines = _draw_panel(panel, groups, metric, axis) | lines
        panel.set_title(f"{metric}: {METRICS.get(metric, '')}", fontsize="medium", wrap=True)
    _place_legend(panels[0][0], [lines[label] for label in groups if label in lines])
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=120)
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error.strerror})") from error
    finally:
        plt.close(figure)


def curves_svg(groups: Mapping[str, Sequence[Run]], metric: str, axis: str = "steps") -> str:
    """Returns a panel as SVG for a page, in the page's own letters and colour of text.

    Args:
        groups: What `in_groups` returned; line n has colour n of `COLOURS`.
        metric: Drawn where a run has it.
        axis: A key of `AXES`.
    """
    import matplotlib as mpl  # noqa: PLC0415 - a second to load
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    drawn = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": metric}):
        figure = Figure(figsize=_PANEL_INCHES)
        panel = figure.add_axes(_PANEL_PLACE)
        _draw_panel(panel, groups, metric, axis)
        panel.ticklabel_format(axis="y", scilimits=_PLAIN_EXPONENTS)
        panel.spines[["top", "right"]].set_visible(False)
        figure.savefig(drawn, format="svg", transparent=True, metadata=_NO_METADATA)
    text = drawn.getvalue()
    return text[text.index("<svg") :].replace("#000000", "currentColor")


def left_out(runs: Sequence[Run], metrics: Sequence[str], axis: str) -> dict[str, list[str]]:
    """Returns the labels of runs that have no line, by what they lack."""
    found: dict[str, list[str]] = {}
    for label, run in zip(own_labels(runs), runs, strict=True):
        if any(curve_of(run, metric, axis).up.size for metric in metrics):
            continue
        measured = any(_has(run, metric) for metric in metrics)
        lacks = AXES[axis][0] if measured else " or ".join(metrics)
        found.setdefault(f"no {lacks}", []).append(label)
    return found


def choose_metrics(runs: Sequence[Run], metrics: Sequence[str], axis: str) -> list[str]:
    """Returns the metrics to draw, after checking that some run has each of them over the axis.

    Raises:
        UsageError: One is missing everywhere; the text names the nearest that is there, or the
            axis over which there is one.
    """
    names = dict.fromkeys(name for run in runs for name in run.columns)
    present = [name for name in names if any(_has(run, name) for run in runs)]
    for name in metrics:
        if name not in present:
            raise UsageError(
                f"--metric: none of the runs has {name[:80]!r}{suggestion(name, present)}"
            )
    wanted = list(metrics) or [name for name in LEADING if name in present]
    if not wanted:
        raise UsageError("RUN: these runs hold no evaluation yet; name a column with --metric")
    drawable = [name for name in wanted if _is_over(axis, runs, name)]
    chosen = list(metrics) or drawable[:1] or wanted[:1]
    for name in chosen:
        if name not in drawable:
            raise _not_over(axis, runs, name)
    return chosen


def curve_of(run: Run, metric: str, axis: str) -> Curve:
    """Returns a metric of a run where it has one."""
    column, unit, _ = AXES[axis]
    empty = np.full(0, math.nan)
    across, up = run.columns.get(column, empty), run.columns.get(metric, empty)
    if across.shape != up.shape:
        return Curve(empty, empty)
    known = np.isfinite(across) & np.isfinite(up)
    return Curve(unit * across[known], up[known])


def on_common_range(curves: Sequence[Curve]) -> tuple[Numbers, Numbers]:
    """Returns points of the range that all curves cover, [P], and the curves there, [R, P]."""
    first = max(curve.across[0] for curve in curves)
    last = max(first, min(curve.across[-1] for curve in curves))
    across = np.linspace(first, last, _POINTS)
    return across, np.stack([np.interp(across, curve.across, curve.up) for curve in curves])


def bootstrap_interval(values: Numbers) -> tuple[Numbers, Numbers]:
    """Returns the ends of the 95 % interval of the interquartile mean over values [R, P]."""
    generator = np.random.default_rng(0)
    picks = generator.integers(len(values), size=(_RESAMPLES, len(values)))
    middles = interquartile_mean(np.moveaxis(values[picks], 1, 0))
    low, high = np.percentile(middles, _PERCENTILES, axis=0)
    return low, high


def interquartile_mean(values: Numbers) -> Numbers:
    """Returns the mean of the middle half along the first axis: a quarter is cut at each end.

    Of fewer than four values none is cut.
    """
    cut = len(values) // 4
    mean: Numbers = np.sort(values, axis=0)[cut : len(values) - cut].mean(axis=0)
    return mean


def _has(run: Run, name: str) -> bool:
    return bool(np.isfinite(run.columns.get(name, np.zeros(0))).any())


def _is_over(axis: str, runs: Sequence[Run], metric: str) -> bool:
    return any(curve_of(run, metric, axis).up.size for run in runs)


def _not_over(axis: str, runs: Sequence[Run], metric: str) -> UsageError:
    """Returns the fault of a metric that has no point over an axis, with one over which it has."""
    others = [other for other in AXES if _is_over(other, runs, metric)]
    choice = f"\nchoose --axis {others[0]}" if others else ""
    column = AXES[axis][0]
    return UsageError(f"--axis {axis}: none of the runs has {column} where it has {metric}{choice}")


def _draw_panel(
    panel: Any, groups: Mapping[str, Sequence[Run]], metric: str, axis: str
) -> dict[str, Any]:
    """Draws a metric of all groups, without a title, and returns the line of each that has it."""
    lines = {}
    for number, (label, members) in enumerate(groups.items()):
        curves = [curve_of(run, metric, axis) for run in members]
        having = [run for run, curve in zip(members, curves, strict=True) if curve.up.size]
        if having:
            curves = [curve for curve in curves if curve.up.size]
            said = label if len(having) == 1 else f"{label} ({how_many(having)})"
            lines[label] = _draw_group(panel, curves, said, COLOURS[number % len(COLOURS)])
    panel.set_xlabel(AXES[axis][2])
    panel.grid(alpha=0.3)
    panel.set_xlim(left=0.0)
    if metric.endswith("_rate"):
        panel.set_ylim(-0.02, 1.02)
    return lines


def _draw_group(panel: Any, curves: Sequence[Curve], label: str, colour: str) -> Any:
    """Draws curves, with their mean where there are several, and returns the labelled line."""
    if len(curves) == 1:
        marker = "o" if curves[0].up.size == 1 else ""
        (line,) = panel.plot(*curves[0], color=colour, label=label, marker=marker)
        return line
    for curve in curves:
        panel.plot(*curve, color=colour, alpha=0.5, linewidth=1.0, zorder=_SEED_ORDER)
    across, values = on_common_range(curves)
    (line,) = panel.plot(across, interquartile_mean(values), color=colour, label=label)
    if len(curves) >= LEAST_FOR_BAND:
        band = {"color": colour, "alpha": 0.18, "linewidth": 0.0, "zorder": _BAND_ORDER}
        panel.fill_between(across, *bootstrap_interval(values), **band)
    return line


def _place_legend(panel: Any, lines: Sequence[Any]) -> None:
    """Puts a legend where the panel has room for it, or else below all panels."""
    labels = [_plain(textwrap.fill(line.get_label(), _LEGEND_LETTERS)) for line in lines]
    if sum(label.count("\n") + 1 for label in labels) <= _MOST_INSIDE:
        legend = panel.legend(lines, labels, fontsize="small")
        if not _covers(legend, panel):
            return
        legend.remove()
    figure = panel.figure
    column = figure.legend(lines, labels, fontsize="small", loc="outside lower center")
    columns = max(1, int(figure.bbox.width / column.get_window_extent().width))
    column.remove()
    below = figure.legend(
        lines, labels, fontsize="small", loc="outside lower center", ncols=columns
    )
    figure.set_figheight(_FIGURE_INCHES[1] + below.get_window_extent().height / figure.dpi)


def _covers(legend: Any, panel: Any) -> bool:
    """Tells whether a legend inside of a panel lies on something that is drawn there."""
    panel.figure.draw_without_rendering()  # finds its place
    box = legend.get_window_extent()
    lines = [(line.get_path(), False) for line in panel.lines]
    bands = [(path, True) for band in panel.collections for path in band.get_paths()]
    return any(
        path.transformed(panel.transData).intersects_bbox(box, filled)
        for path, filled in [*lines, *bands]
    )


def _plain(text: str) -> str:
    """Returns a text of which nothing is read as mathematics: it may come from a file."""
    return text.replace("$", r"\$")
