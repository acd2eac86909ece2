"""What skills are: how far they are told apart, how many there are, where they go."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, BoolArray, IntArray

Numbers = npt.NDArray[np.float64]
_TOGETHER = 2**20
"""Distances that are in memory at a time."""
_MOST_PLACES = 4096
_LEAST = 1e-6


def kept_steps(length: IntArray, steps: int) -> BoolArray:
    """Returns which of T steps come before the first end of their episode, [E, T]."""
    kept: BoolArray = np.arange(steps) < length[:, None]
    return kept


def diversity_returns(log_likelihood: Array, skill: IntArray, length: IntArray) -> Numbers:
    r"""Returns what skills earn for being told apart, a sum for each episode, [E].

    .. math:: \sum_{t < T_e} \log q(z_e | s_{et}) + \log K

    The prior is subtracted and nothing is clipped, whatever the run is paid (arXiv:1802.06070).
    Guessing is worth 0, and no step more than log K.

    Args:
        log_likelihood: log q of every skill, [E, T, K].
        skill: Which one acted, [E].
        length: Steps that count, [E].
    """
    steps, skills = log_likelihood.shape[1:]
    own = np.take_along_axis(log_likelihood, skill[:, None, None], axis=-1)[..., 0]
    paid: Numbers = own.astype(np.float64) + np.log(skills)
    total: Numbers = np.where(kept_steps(length, steps), paid, 0.0).sum(axis=1)
    return total


def named_shares(log_likelihood: Array, length: IntArray) -> Numbers:
    """Returns in which share of the steps each skill is the most likely one, [K].

    Of episodes of one skill it is a row of the matrix of skills that acted and were named.
    """
    steps, skills = log_likelihood.shape[1:]
    named = log_likelihood.argmax(axis=-1)[kept_steps(length, steps)]
    shares: Numbers = np.bincount(named, minlength=skills) / len(named)
    return shares


def end_distances(ends: Array) -> Numbers:
    """Returns how far the mean ends of any two skills lie apart, [K, K], of ends [K, E, D]."""
    centres = ends.mean(axis=1, dtype=np.float64)
    apart: Numbers = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    return apart


def hausdorff_distances(paths: Sequence[Array]) -> Numbers:
    r"""Returns how far the places of any two skills lie apart, [K, K].

    .. math:: H(A, B) = \max(\max_a \min_b \lVert a - b \rVert, \max_b \min_a \lVert a - b \rVert)

    The Hausdorff distance: how far the place of one is from all of the other's, at most. A skill
    whose episodes go different ways is far from others, too: look at `end_spreads` beside it.

    Args:
        paths: Where each skill has been in all its episodes, [N, D] each.
    """
    found = np.zeros([len(paths), len(paths)])
    for first, one in enumerate(paths):
        for second, other in enumerate(paths[:first]):
            nearest, of_other = np.zeros(len(one)), np.full(len(other), np.inf)
            for rows, apart in _distances(one, other):
                nearest[rows] = apart.min(axis=1)
                of_other = np.minimum(of_other, apart.min(axis=0))
            found[first, second] = found[second, first] = max(nearest.max(), of_other.max())
    return found


def end_spreads(ends: Array) -> Numbers:
    """Returns how far ends of a skill's episodes lie apart, a mean over pairs, [K], of [K, E, D].

    Zero where there is one episode.
    """
    apart = np.linalg.norm(ends[:, :, None].astype(np.float64) - ends[:, None], axis=-1)
    pairs = max(1, ends.shape[1] * (ends.shape[1] - 1))
    spreads: Numbers = apart.sum(axis=(1, 2)) / pairs
    return spreads


def evenly_picked(places: Array, most: int = 1000) -> Array:
    """Returns places [N, D], or as many of them as `most` says, evenly picked."""
    picked: Array = places[np.linspace(0, len(places) - 1, min(len(places), most)).astype(np.int64)]
    return picked


def coverage(places: Array, k: int = 3) -> float:
    """Returns how widely places [N, D] are spread: log of the mean distance to the k-th nearest.

    Each place counts once, and of very many some that are evenly picked. Minus infinity is no
    number for a table: where fewer than k + 1 differ, the distance counts as 1e-6.
    """
    once = evenly_picked(np.unique(places, axis=0), _MOST_PLACES)
    if len(once) <= k:
        return float(np.log(_LEAST))
    nearest = np.zeros(len(once))
    for rows, apart in _distances(once, once):
        nearest[rows] = np.partition(apart, k, axis=1)[:, k]  # the nearest is the place itself
    return float(np.log(max(nearest.mean(), _LEAST)))


def _distances(one: Array, other: Array) -> Iterator[tuple[slice, Numbers]]:
    """Yields distances of some rows at a time to all others, [rows, M]."""
    step = max(1, _TOGETHER // len(other))
    for start in range(0, len(one), step):
        rows = slice(start, start + step)
        squares = np.zeros([len(one[rows]), len(other)])
        for column in range(one.shape[1]):
            apart = one[rows, None, column].astype(np.float64) - other[None, :, column]
            squares += apart * apart
        yield rows, np.sqrt(squares)
