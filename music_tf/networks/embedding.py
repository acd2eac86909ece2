"""Finds the way to a place in plain numpy, with an embedding that has been learned."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.networks.acting import mlp
from music_tf.networks.discriminator import columns_of, weights_of
from music_tf.types import Array

PHI = "phi"
"""Name of the embedding among the networks of a run."""
_HERE = 1e-9
"""Length of a way below which there is nowhere to go."""


class Embedding(NamedTuple):
    """An embedding phi in which skills go far along their condition, as it was saved."""

    weights: Sequence[Array]
    """Kernels and biases of its layers in turn, the hidden ones with a ReLU after them."""
    scale: Array | None
    """Centre and unit of what it sees, [2, n]; None where that enters raw."""
    columns: tuple[int, ...]
    """Columns of the observation; empty where the descriptor is an extra."""
    condition: str
    """Kind of the conditions: `one_hot`, `gaussian` or `sphere`."""

    @property
    def seen(self) -> int:
        """How many numbers n it sees of a state."""
        return len(self.weights[0])

    def __call__(self, seen: Array) -> Array:
        """Returns points [..., D] of what is seen of states, [..., n]."""
        rows = seen if self.scale is None else (seen - self.scale[0]) / self.scale[1]
        return mlp(self.weights, np.asarray(rows, np.float32))

    def way(self, here: Array, there: Array) -> Array:
        """Returns phi(there) - phi(here) of what is seen in two states, each [..., n]."""
        return self(there) - self(here)

    def towards(self, way: Array) -> Array:
        r"""Returns the condition that leads a way, [..., D]: zero-shot control without a goal.

        .. math:: z = \frac{\phi(g) - \phi(s)}{\lVert \phi(g) - \phi(s) \rVert}

        On the sphere. A Gaussian condition has the length sqrt(D) that one has on average. Of
        skills the one counts whose direction is the nearest (arXiv:2310.08887).
        """
        size = way.shape[-1]
        if self.condition == "one_hot":
            chosen: Array = np.eye(size, dtype=np.float32)[way.argmax(axis=-1)]
            return chosen
        length = np.linalg.norm(way, axis=-1, keepdims=True)
        unit = np.where(length > _HERE, way / np.maximum(length, _HERE), np.eye(1, size)[0])
        long = np.sqrt(size) if self.condition == "gaussian" else 1.0
        found: Array = (long * unit).astype(np.float32)
        return found

    def leading(self, here: Array, there: Array) -> Array:
        """Returns the condition that leads from one place to another, each [..., n]."""
        return self.towards(self.way(here, there))

    def distance(self, here: Array, there: Array) -> Array:
        """Returns how far two places are apart in the embedding, [...]."""
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
    """Returns the embedding of a checkpoint; None where it holds none.

    Args:
        arrays: Of the checkpoint, `parameters/phi/...` and `scales/phi`.
        inputs: What the checkpoint says that it sees: `components`.
        settings: Of the reward that learned it: `hidden_sizes` and `constraint` count.
        condition: Kind of the conditions.
        size: Numbers D of a condition.
        observation: Numbers of an observation.

    Raises:
        ValueError: It is not one of this run; the text names what does not fit.
    """
    prefix = f"parameters/{PHI}"
    if not any(name.startswith(f"{prefix}/") for name in arrays):
        return None
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
    return Embedding(weights, scale, columns, condition)


def _of_spectral_norm_one(weight: Array) -> Array:
    """Returns a kernel divided by its largest singular value, and a bias as it is."""
    if weight.ndim == 1:
        return weight
    scaled: Array = weight / np.linalg.norm(weight, 2)
    return scaled
