"""Zero-shot control by the measured end positions of skills, in plain numpy."""

from typing import NamedTuple

import numpy as np

from music_tf.types import Array


class Ends(NamedTuple):
    """Measured end positions of the skills of a run."""

    points: Array
    """Mean descriptor of each of K skills at the end of an episode, [K, n]."""
    columns: tuple[int, ...] = ()
    """Columns of the observation that the descriptor has; empty if it is an extra or unknown."""

    @property
    def seen(self) -> int:
        """Size n of the descriptor."""
        return len(self.points[0])

    def nearest(self, there: Array) -> Array:
        """Returns the skill whose end is nearest to a goal [..., n], as one-hot [..., K]."""
        apart = np.linalg.norm(there[..., None, :] - self.points, axis=-1)
        one_hot: Array = np.eye(len(self.points), dtype=np.float32)[apart.argmin(axis=-1)]
        return one_hot

    def leading(self, here: Array, there: Array) -> Array:
        """Returns `nearest` for any current state, to be used like `Embedding.leading`."""
        del here
        return self.nearest(there)

    def distance(self, here: Array, there: Array) -> Array:
        """Returns the distance between descriptors [..., n], [...]."""
        apart: Array = np.linalg.norm(there - here, axis=-1)
        return apart
