"""Metrics of skills: how well they are recognised, and how far apart they are."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.types import Array, Floats, IntArray, Metrics, kept_steps

_TOGETHER = 2**20
"""Number of distances in memory at a time."""
MOST_OF_A_SKILL, MOST_OF_ALL = 1000, 10_000
"""Maximum numbers of places that are compared, which bound the time for many skills."""
_MOST_PLACES = 4096
_LEAST = 1e-6
"""Distance in place of 0, as tables cannot hold minus infinity."""
_FEW_COLUMNS = 8
"""Largest number of columns for exact sums of squares; with more, products are much faster."""


class Track(NamedTuple):
    """Where one skill goes in E episodes."""

    seen: Array  # [E, T + 1, D], the descriptor in each state
    length: IntArray  # [E]

    @property
    def ends(self) -> Array:
        """Last descriptor of each episode, [E, D]."""
        return self.seen[np.arange(len(self.seen)), self.length]


class Separation(NamedTuple):
    """Distances between skills, and the spread of each skill."""

    hausdorff: Floats  # [K, K]
    spreads: Floats  # [K]
    places: Array  # [N, D], the compared places of all skills

    @property
    def coverage(self) -> float:
        return coverage(self.places)

    @property
    def nearest(self) -> Floats:
        """Distance of each skill to its nearest other skill, [K]."""
        nearest: Floats = np.where(np.eye(len(self.spreads)), np.inf, self.hausdorff).min(axis=1)
        return nearest

    def metrics(self) -> Metrics:
        """Returns metrics; a single skill has no distances."""
        pairs = self.hausdorff[np.triu_indices(len(self.spreads), 1)]
        metrics = {"skill/spread": float(self.spreads.mean()), "disk/coverage": self.coverage}
        if pairs.size:
            metrics["skill/hausdorff_mean"] = float(pairs.mean())
            metrics["skill/hausdorff_min"] = float(pairs.min())
        return metrics


def separation(tracks: Sequence[Track]) -> Separation:
    """Measures distances between skills by places that are evenly picked from their episodes."""
    most = min(MOST_OF_A_SKILL, max(1, MOST_OF_ALL // len(tracks)))
    paths = []
    for track in tracks:
        visited = track.seen[kept_steps(track.length + 1, track.seen.shape[1])]
        paths.append(evenly_picked(visited, most))
    spreads = end_spreads(np.stack([track.ends for track in tracks]))
    return Separation(hausdorff_distances(paths), spreads, np.concatenate(paths))


def diversity_returns(log_likelihood: Array, skill: IntArray, length: IntArray) -> Floats:
    """Sums of DIAYN rewards log q + log K over episodes, unclipped, [E] (arXiv:1802.06070)."""
    steps, skills = log_likelihood.shape[1:]
    of_skill = np.take_along_axis(log_likelihood, skill[:, None, None], axis=-1)[..., 0]
    paid: Floats = of_skill.astype(np.float64) + np.log(skills)
    total: Floats = np.where(kept_steps(length, steps), paid, 0.0).sum(axis=1)
    return total


def named_shares(log_likelihood: Array, length: IntArray) -> Floats:
    """Returns the share of steps in which each skill is the most likely one, [K]."""
    steps, skills = log_likelihood.shape[1:]
    named = log_likelihood.argmax(axis=-1)[kept_steps(length, steps)]
    return np.bincount(named, minlength=skills) / len(named)


def end_distances(ends: Array) -> Floats:
    """Returns distances between the mean ends of skills, [K, K], for ends [K, E, D]."""
    centres = ends.mean(axis=1, dtype=np.float64)
    distances: Floats = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    return distances


def hausdorff_distances(paths: Sequence[Array]) -> Floats:
    """Returns Hausdorff distances [K, K] between places of skills in all episodes, [N, D] each."""
    largest = np.zeros([len(paths), len(paths)])
    for a, places in enumerate(paths):
        for b, others in enumerate(paths[:a]):
            nearest, of_other = np.zeros(len(places)), np.full(len(others), np.inf)
            for rows, distances in _distances(places, others):
                nearest[rows] = distances.min(axis=1)
                of_other = np.minimum(of_other, distances.min(axis=0))
            largest[a, b] = largest[b, a] = max(nearest.max(), of_other.max())
    return largest


def end_spreads(ends: Array) -> Floats:
    """Returns the mean distance between ends of a skill's E episodes, [K], for ends [K, E, D]."""
    distances = np.linalg.norm(ends[:, :, None].astype(np.float64) - ends[:, None], axis=-1)
    pairs = max(1, ends.shape[1] * (ends.shape[1] - 1))
    spreads: Floats = distances.sum(axis=(1, 2)) / pairs
    return spreads


def evenly_picked(places: Array, most: int) -> Array:
    """Returns at most `most` of the places [N, D], evenly picked."""
    return places[np.linspace(0, len(places) - 1, min(len(places), most)).astype(np.int64)]


def coverage(places: Array, k: int = 3) -> float:
    """Log of the mean distance of different places [N, D] to their k-th nearest neighbour."""
    once = evenly_picked(np.unique(places, axis=0), _MOST_PLACES)
    if len(once) <= k:
        return float(np.log(_LEAST))
    nearest = np.zeros(len(once))
    for rows, distances in _distances(once, once):
        nearest[rows] = np.partition(distances, k, axis=1)[:, k]  # the nearest is the place itself
    return float(np.log(max(nearest.mean(), _LEAST)))


def _distances(places: Array, others: Array) -> Iterator[tuple[slice, Floats]]:
    """Yields slices of rows of `places`, with their distances to all of `others`, [rows, M]."""
    step = max(1, _TOGETHER // len(others))
    squares = _by_columns if places.shape[1] <= _FEW_COLUMNS else _by_products
    for start in range(0, len(places), step):
        rows = slice(start, start + step)
        yield rows, np.sqrt(squares(places[rows], others))


def _by_columns(places: Array, others: Array) -> Floats:
    """Returns exact squared distances."""
    squares = np.zeros([len(places), len(others)])
    for column in range(places.shape[1]):
        gap = places[:, None, column].astype(np.float64) - others[None, :, column]
        squares += gap * gap
    return squares


def _by_products(places: Array, others: Array) -> Floats:
    """Returns squared distances by a matrix product, centred to reduce rounding errors."""
    centre = others.mean(axis=0, dtype=np.float64)
    near, far = places - centre, others - centre
    lengths = np.square(near).sum(axis=1)[:, None] + np.square(far).sum(axis=1)
    squares: Floats = np.maximum(lengths - 2.0 * near @ far.T, 0.0)
    return squares
