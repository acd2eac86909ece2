"""Zero-shot control: what chooses a condition that leads to a place, in plain numpy.

`tools.portable` copies this module into the file for robots, so Python 3.9 must run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from music_tf.networks.acting import likeliest, mlp
from music_tf.types import Array, moved_first

PHI = "phi"
"""Name of the embedding among the networks of a run."""
SPEED = "scales/phi/speed"
"""Name in checkpoints of the length of the best step under a condition of length 1."""
_HERE = 1e-9
"""Length of a displacement below which it has no direction."""
STEPS = 1.5
"""Steps at full speed from a goal within which conditions of a ball get shorter."""


class Embedding(NamedTuple):
    """A saved embedding phi, in which skills move far along their condition."""

    weights: Sequence[Array]
    """Kernel and bias of each layer; hidden layers are ReLU."""
    scale: Array | None
    """Mean and deviation of the inputs, [2, n]; None if they are not normalised."""
    columns: tuple[int, ...]
    """Columns of the observation; empty if the descriptor is an extra."""
    condition: str
    """Kind of the conditions: `one_hot`, `gaussian`, `sphere` or `ball`."""
    near: float = 0.0
    """With conditions in a ball, the distance of scaled inputs below which they are shorter."""
    groups: int = 1
    """Objects among its inputs, of which a condition moves one. One is at its goal within half of
    `near`."""
    places: bool = False
    """Whether conditions are places, seen from the mean of the inputs, in units of `near`."""

    @property
    def seen(self) -> int:
        """Number n of inputs."""
        return len(self.weights[0])

    @property
    def speed(self) -> float:
        """Length of a step under a velocity of length 1, as `near` is measured; 0 without them."""
        return self.near / STEPS if self.condition == "ball" and not self.places else 0.0

    def __call__(self, seen: Array) -> Array:
        return mlp(self.weights, np.asarray(self._scaled(seen), np.float32))

    def _scaled(self, seen: Array) -> Array:
        return seen if self.scale is None else (seen - self.scale[0]) / self.scale[1]

    def way(self, here: Array, goal: Array) -> Array:
        return self(goal) - self(here)

    def towards(self, way: Array) -> Array:
        """Returns the condition whose skill moves along a displacement, both [..., D]."""
        size = way.shape[-1]
        if self.condition == "one_hot":
            return likeliest(way)  # arXiv:2310.08887
        length = np.linalg.norm(way.astype(np.float64), axis=-1, keepdims=True)
        unit = np.where(length > _HERE, way / np.maximum(length, _HERE), np.eye(1, size)[0])
        long = np.sqrt(size) if self.condition == "gaussian" else 1.0  # the typical norm
        return np.asarray(long * unit, np.float32)

    def leading(self, here: Array, goal: Array) -> Array:
        """Returns the condition that leads from one state to another, given inputs [..., n]."""
        if self.groups > 1:
            way = self._scaled(goal) - self._scaled(here)
            goal = np.where(moved_first(way, self.groups, self.near / 2), goal, here)
        if self.places and self.scale is not None:
            here = self.scale[0]
        way = self.way(here, goal)
        towards = self.towards(way)
        if self.condition != "ball":
            return towards  # of a ball: a velocity, which falls near the goal, or a place
        left = way if self.places else self._scaled(goal) - self._scaled(here)
        long = np.minimum(1.0, np.linalg.norm(left, axis=-1, keepdims=True) / self.near)
        return np.asarray(towards * long, np.float32)

    def distance(self, here: Array, goal: Array) -> Array:
        return np.asarray(np.linalg.norm(self.way(here, goal), axis=-1))


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

    def nearest(self, goal: Array) -> Array:
        """Returns the skill whose end is nearest to a goal [..., n], as one-hot [..., K]."""
        return likeliest(-np.linalg.norm(goal[..., None, :] - self.points, axis=-1))

    def leading(self, here: Array, goal: Array) -> Array:
        return self.nearest(goal)

    def distance(self, here: Array, goal: Array) -> Array:
        return np.asarray(np.linalg.norm(goal - here, axis=-1))
