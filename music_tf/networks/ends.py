"""Finds the skill that ends nearest to a place, in plain numpy."""

from typing import NamedTuple

import numpy as np

from music_tf.types import Array


class Ends(NamedTuple):
    """Where the skills of a run end, as it was measured."""

    points: Array
    """Mean end of each of K skills, in what skills are told apart by, [K, n]."""
    columns: tuple[int, ...] = ()
    """Of the observation, that these numbers are; empty where they stand beside it or nobody has
    asked the environment."""

    @property
    def seen(self) -> int:
        """How many numbers n an end has."""
        return len(self.points[0])

    def nearest(self, there: Array) -> Array:
        """Returns the skill whose end lies nearest to a place [..., n], as one-hot [..., K]."""
        apart = np.linalg.norm(there[..., None, :] - self.points, axis=-1)
        one_hot: Array = np.eye(len(self.points), dtype=np.float32)[apart.argmin(axis=-1)]
        return one_hot

    def leading(self, here: Array, there: Array) -> Array:
        """Returns the same, wherever one is."""
        del here
        return self.nearest(there)

    def distance(self, here: Array, there: Array) -> Array:
        """Returns how far two places [..., n] are apart, [...]."""
        apart: Array = np.linalg.norm(there - here, axis=-1)
        return apart
