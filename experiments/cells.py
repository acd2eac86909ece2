"""The cells of tables that show stored results: titles, numbers, means over seeds."""

import math
import statistics
from collections.abc import Callable, Sequence

SUCCESS = "eval/success_rate"
TITLES = {
    SUCCESS: "success",
    "eval/object_moved_rate": "moved",
    "eval/object_on_support_rate": "on support",
    "eval/object_comotion_m": "co-motion (m)",
    "eval/object_lift_rate": "lifted",
    "eval/object_displacement_m": "displacement (m)",
    "eval/object_coverage": "cells",
    "reward/music_mean": "mean reward",
}
"""Of columns of `metrics.csv`."""
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t by degrees of freedom, from 1 on."""
_BLANK_SEED = "-"
_TINY = 0.01


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in markdown."""
    return "\n".join([_line(header), "|" + "---|" * len(header), *map(_line, rows)])


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
    each = ", ".join(show(value) or _BLANK_SEED for value in values)
    return f"{show(statistics.fmean(known))} ({each})"


def difference(values: Sequence[float | None], others: Sequence[float | None]) -> str:
    """Returns the difference of two means and the half width of its 95 % interval.

    A seed on each side has no interval; above 30 degrees of freedom it is that of 30, which is at
    most 4 % too wide. Blank where a seed has no value.
    """
    ours, theirs = _all_known(values), _all_known(others)
    if not ours or not theirs:
        return ""
    middle = statistics.fmean(ours) - statistics.fmean(theirs)
    freedom = len(ours) + len(theirs) - 2
    if freedom == 0:
        return f"{middle:+.2f}"
    squares = sum((one - statistics.fmean(group)) ** 2 for group in (ours, theirs) for one in group)
    error = math.sqrt(squares / freedom * (1.0 / len(ours) + 1.0 / len(theirs)))
    return f"{middle:+.2f} ± {STUDENT[min(freedom, len(STUDENT)) - 1] * error:.2f}"


def _all_known(values: Sequence[float | None]) -> list[float]:
    """Returns the values if every seed has one, else none."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return known if len(known) == len(values) else []


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
