"""Zero-shot control with a learned embedding, in plain numpy."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.networks.acting import mlp
from music_tf.networks.discriminator import columns_of, refuse_own, weights_of
from music_tf.types import Array, moved_first

PHI = "phi"
"""Name of the embedding among the networks of a run."""
SPEED = "scales/phi/speed"
"""Name in checkpoints of the length of the best step under a condition of length 1."""
_HERE = 1e-9
"""Length of a displacement below which it has no direction."""
_STEPS = 1.5
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
        return self.near / _STEPS if self.condition == "ball" and not self.places else 0.0

    def __call__(self, seen: Array) -> Array:
        """Returns points [..., D] in the embedding for inputs [..., n]."""
        return mlp(self.weights, np.asarray(self._scaled(seen), np.float32))

    def _scaled(self, seen: Array) -> Array:
        return seen if self.scale is None else (seen - self.scale[0]) / self.scale[1]

    def way(self, here: Array, there: Array) -> Array:
        """Returns phi(there) - phi(here), [..., D], for inputs [..., n]."""
        return self(there) - self(here)

    def towards(self, way: Array) -> Array:
        r"""Returns the condition whose skill moves along a displacement, both [..., D].

        .. math:: z = \frac{\phi(g) - \phi(s)}{\lVert \phi(g) - \phi(s) \rVert}

        The equation is for the sphere and the surface of the ball. A Gaussian condition gets length
        sqrt(D), its typical norm.
        With one-hot conditions the skill of the nearest direction is chosen (arXiv:2310.08887).
        """
        size = way.shape[-1]
        if self.condition == "one_hot":
            chosen: Array = np.eye(size, dtype=np.float32)[way.argmax(axis=-1)]
            return chosen
        length = np.linalg.norm(way.astype(np.float64), axis=-1, keepdims=True)
        unit = np.where(length > _HERE, way / np.maximum(length, _HERE), np.eye(1, size)[0])
        long = np.sqrt(size) if self.condition == "gaussian" else 1.0
        found: Array = (long * unit).astype(np.float32)
        return found

    def leading(self, here: Array, there: Array) -> Array:
        """Returns the condition that leads from one state to another, given inputs [..., n].

        A condition of the ball is a velocity, which falls near the goal, or a place.
        """
        if self.groups > 1:
            way = self._scaled(there) - self._scaled(here)
            there = np.where(moved_first(way, self.groups, self.near / 2), there, here)
        if self.places and self.scale is not None:
            here = self.scale[0]
        way = self.way(here, there)
        towards = self.towards(way)
        if self.condition != "ball":
            return towards
        left = way if self.places else self._scaled(there) - self._scaled(here)
        long = np.minimum(1.0, np.linalg.norm(left, axis=-1, keepdims=True) / self.near)
        slowed: Array = (towards * long).astype(np.float32)
        return slowed

    def distance(self, here: Array, there: Array) -> Array:
        """Returns the distance of two states in the embedding, [...]."""
        apart: Array = np.linalg.norm(self.way(here, there), axis=-1)
        return apart


def embedding_of(
    arrays: Mapping[str, Array],
    inputs: Any,
    settings: Any,
    condition: str,
    size: int,
    observation: int,
) -> Embedding | None:
    """Returns the embedding of a checkpoint; None if there is none.

    Args:
        arrays: Arrays of the checkpoint, `parameters/phi/...`, `scales/phi` and `scales/phi/speed`.
        inputs: Its inputs by the checkpoint: `components`.
        settings: Settings of its reward: `hidden_sizes`, `constraint` and `reach` are used.
        condition: Kind of the conditions.
        size: Size D of a condition.
        observation: Size O of an observation.

    Raises:
        ValueError: It does not fit the run; the text names what differs.
    """
    prefix = f"parameters/{PHI}"
    if not any(name.startswith(f"{prefix}/") for name in arrays):
        return None
    refuse_own(prefix, inputs)
    layer = "hidden_0" if settings.hidden_sizes else "point"
    first = arrays.get(f"{prefix}/{layer}/kernel", np.zeros([0, 0], np.float32))
    if first.ndim != 2:  # noqa: PLR2004
        raise ValueError(f"{prefix}/{layer}/kernel: expected a matrix, found {first.shape}")
    weights = weights_of(arrays, prefix, "point", [len(first), *settings.hidden_sizes, size])
    if settings.constraint == "spectral":
        weights = [_of_spectral_norm_one(each) for each in weights]
    columns = columns_of(inputs)
    if beyond := [column for column in columns if column >= observation]:
        raise ValueError(
            f"{prefix}: expected columns of the observation, 0 to {observation - 1}, found "
            f"{beyond[0]}"
        )
    scale = arrays.get(f"scales/{PHI}")
    if len(columns) not in (0, len(first)) or (
        scale is not None and scale.shape != (2, len(first))
    ):
        raise ValueError(f"{prefix}: what it sees does not fit its {len(first)} inputs")
    if settings.reach < np.inf:
        return Embedding(weights, scale, columns, condition, settings.reach, places=True)
    speed = arrays.get(SPEED, np.zeros([])) if condition == "ball" else np.ones([])
    if speed.shape or not 0.0 < speed < np.inf:
        raise ValueError(f"{SPEED}: expected a number above 0, found {speed}")
    return Embedding(weights, scale, columns, condition, _STEPS * float(speed))


def _of_spectral_norm_one(weight: Array) -> Array:
    """Returns a kernel divided by its largest singular value; a bias is unchanged."""
    if weight.ndim == 1:
        return weight
    return weight / np.linalg.norm(weight, 2)
