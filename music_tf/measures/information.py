r"""Estimates of mutual information from nearest neighbours, in nats, and a permutation test.

Distances are maxima over components, so components should have comparable units.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, Episodes, IntArray, SplitSpec, kept_steps

NEIGHBOURS = 3
"""Number k of the neighbour that sets the scale at each sample."""
MOST_SAMPLES = 2000
"""Maximum number of steps in an estimate, whose cost is quadratic in it."""
SHUFFLES = 20
"""Number of random pairings of different episodes."""
_ROWS = 256
_EULER = 0.5772156649015329


class Information(NamedTuple):
    """Estimates of mutual information, and a null distribution from pairings of episodes."""

    same: npt.NDArray[np.float64]
    """Estimates from the steps of each pairing, or one if all episodes are equally long, because
    all pairings then have the same steps."""
    null: npt.NDArray[np.float64]
    """Estimates with y from the other episode at the same time step, one for each pairing."""

    @property
    def nats(self) -> float:
        """Mean estimate; there must be one."""
        return float(self.same.mean())

    @property
    def chance(self) -> float:
        """The p-value: (1 + pairings with at least as much) / (1 + pairings)."""
        return float((1 + np.sum(self.null >= self.same)) / (1 + len(self.null)))


def mutual_information(x: Array, y: Array, neighbours: int = NEIGHBOURS) -> float:
    r"""Estimates I(x; y) in nats from the distances of N samples to their k nearest neighbours.

    .. math:: I = \psi(k) + \psi(N) - \langle \psi(n_x + 1) + \psi(n_y + 1) \rangle

    where n_x and n_y are the numbers of other samples whose distance in x or in y alone is smaller
    than the joint distance of the k-th neighbour (Kraskov, Stoegbauer and Grassberger, 2004,
    arXiv:cond-mat/0305641, first estimator). If that neighbour is at distance zero, such as for a
    robot and an object at rest, k and both counts are the numbers of samples at distance zero, the
    sample itself included, as in Gao et al. (2017, arXiv:1709.06212), who have a logarithm in place
    of some digamma functions. Samples are [N, X] and [N, Y], with N above k. The estimate may be
    negative where x and y are independent.
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
        in_x, in_y = _distances(x, rows), _distances(y, rows)
        joint = np.maximum(in_x, in_y)
        reach = np.partition(joint, neighbours, axis=1)[:, neighbours, None]  # the first is itself
        tied = reach[:, 0] == 0.0
        within_x = np.where(tied, (in_x == 0.0).sum(axis=1), (in_x < reach).sum(axis=1))
        within_y = np.where(tied, (in_y == 0.0).sum(axis=1), (in_y < reach).sum(axis=1))
        within = np.where(tied, (joint == 0.0).sum(axis=1), neighbours)
        total += float(np.sum(digamma[within] - digamma[within_x] - digamma[within_y]))
    return float(digamma[samples]) + total / samples


def paired_information(
    x: Array,  # [E, T, X]
    y: Array,  # [E, T, Y]
    length: IntArray,  # [E], E at least 2
    generator: np.random.Generator,
    shuffles: int = SHUFFLES,  # pairings; those with at most NEIGHBOURS common steps are left out
    samples: int = MOST_SAMPLES,  # most steps in an estimate
) -> Information:
    """Estimates the information of two motions in the same steps, and its null distribution."""
    if len(length) < 2:  # noqa: PLR2004
        raise ValueError(f"expected at least two episodes, got {len(length)}")
    valid = kept_steps(length, x.shape[1])
    episode, step = np.nonzero(valid)
    chosen = generator.permutation(len(episode))[:samples]
    episode, step = episode[chosen], step[chosen]
    equally_long = bool((length == length[0]).all())
    same: list[float] = []
    null: list[float] = []
    for _ in range(shuffles):
        order = generator.permutation(len(length))
        partner = np.empty_like(order)
        partner[order] = np.roll(order, 1)  # one cycle: no episode is its own partner
        both = valid[partner[episode], step]
        e, t = episode[both], step[both]
        if len(e) <= NEIGHBOURS:
            continue
        null.append(mutual_information(x[e, t], y[partner[e], t]))
        if not (same and equally_long):
            same.append(mutual_information(x[e, t], y[e, t]))
    return Information(np.array(same), np.array(null))


def information_of_moves(
    played: Episodes,
    split: SplitSpec | None,
    generator: np.random.Generator,
    shuffles: int = SHUFFLES,
    samples: int = MOST_SAMPLES,
) -> Information | None:  # None: no surroundings, too few episodes or common steps
    """Estimates information between moves of robot and surroundings, as `paired_information`."""
    if split is None or len(played.length) < 2:  # noqa: PLR2004
        return None
    moved = np.diff(played.observation, axis=1)  # [E, T, O]
    agent, surrounding = moved[..., list(split.agent)], moved[..., list(split.surrounding)]
    estimate = paired_information(agent, surrounding, played.length, generator, shuffles, samples)
    return estimate if len(estimate.null) else None


def _distances(values: Array, rows: slice) -> Array:
    """Returns maximum-norm distances of some samples to all samples, [rows, N]."""
    distances = np.zeros([len(values[rows]), len(values)], values.dtype)
    for column in values.T:
        np.maximum(distances, np.abs(column[rows, None] - column), out=distances)
    return distances
