r"""Mutual information of samples without a network, and what it would be by chance.

Everything is in nats and in numpy. Distances are those of the largest component, in the units of
the data, so components should have comparable units.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, BoolArray, IntArray

NEIGHBOURS = 3
"""Which nearest neighbour sets the scale at each sample."""
MOST_SAMPLES = 2000
"""Steps that enter an estimate; its cost grows with their square."""
SHUFFLES = 20
"""Pairings of different episodes that show what chance gives."""
_ROWS = 256
_EULER = 0.5772156649015329


class Information(NamedTuple):
    """Estimates beside what the same estimator gives for movements that do not belong together.

    Each pairing of episodes has a null, and an estimate from the very same steps. Pairings with
    too few steps have neither.
    """

    same: npt.NDArray[np.float64]
    """The estimates; a single one where all episodes are equally long, so that every pairing has
    the same steps."""
    null: npt.NDArray[np.float64]
    """The same with y of the other episode at the same time step, one for each pairing."""

    @property
    def nats(self) -> float:
        """The estimate, in the mean over pairings; there must be one."""
        return float(self.same.mean())

    @property
    def chance(self) -> float:
        """How often chance gives at least as much: (1 + such pairings) / (1 + pairings)."""
        return float((1 + np.sum(self.null >= self.same)) / (1 + len(self.null)))


def mutual_information(x: Array, y: Array, neighbours: int = NEIGHBOURS) -> float:
    r"""Estimates I(x; y) from the distances of samples to their nearest neighbours.

    .. math:: I = \psi(k) + \psi(N) - \langle \psi(n_x + 1) + \psi(n_y + 1) \rangle

    with n_x and n_y the other samples that are nearer in x or in y alone than the k-th neighbour is
    in both (Kraskov, Stoegbauer and Grassberger, 2004, arXiv:cond-mat/0305641, first estimator).
    Where that neighbour lies at distance zero, as for a robot and an object that both rest, the
    samples at distance zero are counted instead, the sample itself included. They are counted in
    both for k, in x alone and in y alone. So do Gao et al. (2017, arXiv:1709.06212), who write a
    logarithm for some of the digamma functions.

    Samples are x [N, X] and y [N, Y], and k = `neighbours`. The nats may lie below zero by chance
    where x and y are independent.

    Raises:
        ValueError: The numbers of samples differ, or are no more than k.
    """
    samples = len(x)
    if len(y) != samples or not 1 <= neighbours < samples:
        raise ValueError(
            f"expected as many x as y and more than k = {neighbours}, got {samples} and {len(y)}"
        )
    digamma = np.concatenate([[np.nan, 0.0], np.cumsum(1.0 / np.arange(1, samples))]) - _EULER
    total = 0.0
    for start in range(0, samples, _ROWS):
        rows = slice(start, start + _ROWS)
        apart_x, apart_y = _distances(x, rows), _distances(y, rows)
        apart = np.maximum(apart_x, apart_y)
        reach = np.partition(apart, neighbours, axis=1)[:, neighbours, None]  # itself is the first
        tied = reach[:, 0] == 0.0
        within_x = np.where(tied, (apart_x == 0.0).sum(axis=1), (apart_x < reach).sum(axis=1))
        within_y = np.where(tied, (apart_y == 0.0).sum(axis=1), (apart_y < reach).sum(axis=1))
        within = np.where(tied, (apart == 0.0).sum(axis=1), neighbours)
        total += float(np.sum(digamma[within] - digamma[within_x] - digamma[within_y]))
    return float(digamma[samples]) + total / samples


def paired_information(
    x: Array,
    y: Array,
    length: IntArray,
    generator: np.random.Generator,
    shuffles: int = SHUFFLES,
    samples: int = MOST_SAMPLES,
) -> Information:
    """Estimates the information between two movements of the same steps, and its null.

    The null keeps how x and y behave in time, each by itself, and takes away that they happen in
    the same episode. So it has what is common to all episodes at the same time, too. Only steps
    count that both episodes of a pair have, at most `samples` in all, and of the `shuffles`
    pairings those that have more than `NEIGHBOURS` such steps. Movements are [E, T, X] and
    [E, T, Y], lengths [E].

    Raises:
        ValueError: There are fewer than two episodes.
    """
    if len(length) < 2:  # noqa: PLR2004
        raise ValueError(f"expected at least two episodes, got {len(length)}")
    valid: BoolArray = np.arange(x.shape[1]) < length[:, None]
    episode, step = np.nonzero(valid)
    chosen = generator.permutation(len(episode))[:samples]
    episode, step = episode[chosen], step[chosen]
    equally_long = bool((length == length[0]).all())
    same: list[float] = []
    null: list[float] = []
    for _ in range(shuffles):
        order = generator.permutation(len(length))
        partner = np.empty_like(order)
        partner[order] = np.roll(order, 1)  # one cycle, so that none is its own partner
        both = valid[partner[episode], step]
        own, at = episode[both], step[both]
        if len(own) <= NEIGHBOURS:
            continue
        null.append(mutual_information(x[own, at], y[partner[own], at]))
        if not (same and equally_long):
            same.append(mutual_information(x[own, at], y[own, at]))
    return Information(np.array(same), np.array(null))


def _distances(values: Array, rows: slice) -> Array:
    """Distance of some samples to all of them, by the largest component, [rows, N]."""
    apart = np.zeros([len(values[rows]), len(values)], values.dtype)
    for column in values.T:
        np.maximum(apart, np.abs(column[rows, None] - column), out=apart)
    return apart
