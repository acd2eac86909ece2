"""What skills are: how far they are told apart, how many there are, where they go."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, BoolArray, IntArray, Metrics

Numbers = npt.NDArray[np.float64]
_TOGETHER = 2**20
"""Distances that are in memory at a time."""
MOST_OF_A_SKILL, MOST_OF_ALL = 1000, 10_000
"""Places that are compared, so that fifty skills take about as long as ten."""
_MOST_PLACES = 4096
_LEAST = 1e-6
_FEW_COLUMNS = 8
"""Up to as many, distances are exact sums over columns; above, products are much faster."""


class Separation(NamedTuple):
    """How far skills lie apart, and how far one skill goes different ways."""

    hausdorff: Numbers  # [K, K]
    spreads: Numbers  # [K]
    places: Array  # [N, D], those that were compared, of all skills

    @property
    def coverage(self) -> float:
        """How widely all these places are spread, as the function of that name says it."""
        return coverage(self.places)

    @property
    def nearest(self) -> Numbers:
        """How far each skill lies from the one that is nearest to it, [K]."""
        found: Numbers = np.where(np.eye(len(self.spreads)), np.inf, self.hausdorff).min(axis=1)
        return found

    def metrics(self) -> Metrics:
        """Returns them as metrics; a single skill is apart from nothing."""
        pairs = self.hausdorff[np.triu_indices(len(self.spreads), 1)]
        found = {"skill/spread": float(self.spreads.mean()), "disk/coverage": self.coverage}
        if pairs.size:
            found["skill/hausdorff_mean"] = float(pairs.mean())
            found["skill/hausdorff_min"] = float(pairs.min())
        return found


def separation(seen: Sequence[Array], length: Sequence[IntArray]) -> Separation:
    """Measures how far skills lie apart in what tells them apart, whichever episodes they played.

    A place counts from the first state of an episode to that after its last step. Of more than
    1000 places of a skill, or 10,000 of all, as many are compared, evenly picked: what is found is
    at most as far off as a skill gets between two of them.

    Args:
        seen: What tells skills apart along E episodes of each, [E, T + 1, D].
        length: Steps of these episodes that count, [E] for each skill.
    """
    most = min(MOST_OF_A_SKILL, max(1, MOST_OF_ALL // len(seen)))
    paths, ends = [], []
    for places, steps in zip(seen, length, strict=True):
        visited = places[kept_steps(steps + 1, places.shape[1])]
        paths.append(evenly_picked(visited, most))
        ends.append(places[np.arange(len(places)), steps])
    spreads = end_spreads(np.stack(ends))
    return Separation(hausdorff_distances(paths), spreads, np.concatenate(paths))


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


def evenly_picked(places: Array, most: int) -> Array:
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
    squares = _by_columns if one.shape[1] <= _FEW_COLUMNS else _by_products
    for start in range(0, len(one), step):
        rows = slice(start, start + step)
        yield rows, np.sqrt(squares(one[rows], other))


def _by_columns(one: Array, other: Array) -> Numbers:
    """Returns squares of distances, exact."""
    squares = np.zeros([len(one), len(other)])
    for column in range(one.shape[1]):
        apart = one[:, None, column].astype(np.float64) - other[None, :, column]
        squares += apart * apart
    return squares


def _by_products(one: Array, other: Array) -> Numbers:
    """Returns the same up to rounding; a large common part is taken away before."""
    centre = other.mean(axis=0, dtype=np.float64)
    near, far = one - centre, other - centre
    lengths = np.square(near).sum(axis=1)[:, None] + np.square(far).sum(axis=1)
    squares: Numbers = np.maximum(lengths - 2.0 * near @ far.T, 0.0)
    return squares
