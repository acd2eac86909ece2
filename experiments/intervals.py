"""Cells of a table over seeds: means, differences and counts with their 95 % intervals."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
from scipy import stats

from music_tf.types import Floats

_HALF = 0.5
_LARGE = 100.0
_DECIMALS = 2
"""The most that a mean and its interval have."""


def number(value: float | None) -> str:
    """Returns a value with two decimals, or none if it is large."""
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "never"
    return f"{value:.0f}" if abs(value) >= _LARGE else f"{value:.2f}"


def with_interval(value: float, half: float, sign: str = "") -> str:
    """Returns a value and half of its interval, both with two digits of the half.

    Neither has more than two decimals, and neither loses digits before the point.
    """
    exponent = int(f"{half:.1e}".partition("e")[2])
    decimals = min(max(1 - exponent, 0), _DECIMALS)
    return f"{value:{sign}z.{decimals}f} ± {half:.{decimals}f}"


def mean(values: Sequence[float | None], *, share: bool = False) -> str:
    """Returns the mean over seeds with the half width of Student's 95 % interval.

    A single value, or equal values, have no interval, since a width of 0 would claim that no other
    seed could differ. A share at a bound has `counted` instead. Blank if a seed lacks its value.
    """
    finite = [value for value in values if value is not None and not math.isnan(value)]
    if not finite or len(finite) < len(values):
        return ""
    average = statistics.fmean(finite)
    if share and len(finite) > 1 and at_a_bound(finite):
        return f"{number(average)}: {counted(finite)}"
    if not math.isfinite(average) or np.ptp(finite) == 0.0:
        return number(average)
    return with_interval(average, half_width(finite))


def arrivals(times: Sequence[float | None], digits: int = 0) -> str:
    """Returns how many seeds reached a level, with median and range of their times.

    A seed that never did counts as later than all others. Blank if a seed has no level.
    """
    known_times = [value for value in times if value is not None]
    if not known_times or len(known_times) < len(times):
        return ""
    arrived = [value for value in known_times if math.isfinite(value)]
    count = f"{len(arrived)} of {len(known_times)} seeds"
    if not arrived:
        return count
    median, first, last = (
        "never" if math.isinf(value) else f"{value:.{digits}f}"
        for value in (statistics.median(known_times), min(known_times), max(known_times))
    )
    return f"{count}: {median}" + (f" ({first} to {last})" if len(known_times) > 1 else "")


def with_least(shares: Sequence[float | None]) -> str:
    """Returns the mean and the least of shares; blank if a seed lacks its value."""
    present = [value for value in shares if value is not None]
    if not present or len(present) < len(shares):
        return ""
    return f"{number(statistics.fmean(present))} (least {number(min(present))})"


def difference(
    ours: Sequence[float | None], theirs: Sequence[float | None], *, share: bool = False
) -> str:
    """Returns the difference of two means and the half width of its 95 % interval.

    The interval is Welch's, with a variance for each side; there is none if a side has a single
    seed, or if neither side varies. Shares at a bound have counts of seeds instead. Blank if a seed
    lacks its value.
    """
    sides = [np.array(list(side), np.float64) for side in (ours, theirs)]
    if not all(side.size and np.isfinite(side).all() for side in sides):
        return ""
    apart = float(sides[0].mean() - sides[1].mean())
    shown = f"{apart:+.2f}"
    degrees = np.array([side.size - 1 for side in sides])
    if not degrees.all():
        return shown
    if share and any(map(at_a_bound, sides)):
        return f"{shown} ({'; '.join(map(counted, sides))})"
    squares = np.array([side.var(ddof=1) / side.size for side in sides])
    if not squares.any():
        return shown
    freedom = squares.sum() ** 2 / (squares**2 / degrees).sum()
    return with_interval(apart, stats.t.ppf(0.975, freedom) * math.sqrt(squares.sum()), "+")


def half_width(values: Sequence[float] | Floats) -> float:
    """Returns the half width of Student's 95 % interval of a mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def at_a_bound(shares: Sequence[float] | Floats) -> bool:
    """Whether Student's 95 % interval of a mean of shares leaves [0, 1], or all are 0 or all 1."""
    average, half = float(np.mean(shares)), half_width(shares)
    return bool(average - half < 0.0 or average + half > 1.0 or average in (0.0, 1.0))


def counted(shares: Sequence[float] | Floats) -> str:
    """Returns on how many seeds a share is at least one half.

    The 95 % interval is the exact one of Clopper and Pearson (1934).
    """
    count = int((np.asarray(shares) >= _HALF).sum())
    low, high = stats.binomtest(count, len(shares)).proportion_ci(method="exact")
    return f"{count} of {len(shares)} seeds ({low:.2f} to {high:.2f})"
