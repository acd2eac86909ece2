"""Networks of reward terms that a saved policy applies, as a checkpoint holds them."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.networks.acting import mlp, weight_shapes
from music_tf.networks.embedding import PHI, SPEED, STEPS, Embedding
from music_tf.types import Array

OWN = "own"
"""Key in the inputs of a network, by a checkpoint, which numpy cannot copy."""


class Discriminator(NamedTuple):
    """A saved discriminator q(z | s) over K skills."""

    weights: Sequence[Array]
    """Kernel and bias of each layer; hidden layers are ReLU."""
    scale: Array | None
    """Mean and deviation of the inputs, [2, D]; None if they are not normalised."""
    columns: tuple[int, ...]
    """Columns of the observation; empty if the descriptor is an extra."""
    after: bool
    """Whether inputs are from the state after an action, or before it."""
    blind: bool = False
    """Whether zeros replace the state."""

    @property
    def size(self) -> int:
        """Number D of inputs from a state."""
        return len(self.weights[0])

    def log_likelihood(self, seen: Array) -> Array:
        """Returns log q(z | s) in nats, [..., K], of inputs [..., D]; of any if it is blind."""
        rows = np.zeros((*seen.shape[:-1], self.size), np.float32) if self.blind else seen
        rows = rows if self.scale is None else (rows - self.scale[0]) / self.scale[1]
        logits = mlp(self.weights, rows)
        shifted = logits - logits.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def discriminator_of(
    arrays: Mapping[str, Array], inputs: Any, hidden: Sequence[int], skills: int
) -> Discriminator | None:
    """Returns the discriminator of a checkpoint, or None; a ValueError names what does not fit."""
    prefix = "parameters/discriminator"
    if not any(name.startswith(f"{prefix}/") for name in arrays):
        return None
    refuse_own(prefix, inputs)
    first = _matrix(arrays, f"{prefix}/hidden_0/kernel")
    weights = weights_of(arrays, prefix, "logits", [len(first), *hidden, skills])
    stored = inputs if isinstance(inputs, dict) else {}
    columns = columns_of(stored)
    scale = arrays.get("scales/discriminator")
    fits = scale is None or scale.shape == (2, len(first))
    fits = fits and len(columns) in (0, len(first))
    if not fits or stored.get("state") not in ("current", "next"):
        raise ValueError(f"{prefix}: what it sees does not fit its {len(first)} inputs")
    after, blind = stored["state"] == "next", stored.get("blind") is True
    return Discriminator(weights, scale, columns, after, blind)


def embedding_of(
    arrays: Mapping[str, Array],
    inputs: Any,
    settings: Any,
    condition: str,
    size: int,
    observation: int,
) -> Embedding | None:
    """Returns the embedding of a checkpoint, or None; a ValueError names what does not fit."""
    prefix = f"parameters/{PHI}"
    if not any(name.startswith(f"{prefix}/") for name in arrays):
        return None
    refuse_own(prefix, inputs)
    layer = "hidden_0" if settings.hidden_sizes else "point"
    first = _matrix(arrays, f"{prefix}/{layer}/kernel")
    weights = weights_of(arrays, prefix, "point", [len(first), *settings.hidden_sizes, size])
    if settings.constraint == "spectral":
        weights = [each / np.linalg.norm(each, 2) if each.ndim > 1 else each for each in weights]
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
    return Embedding(weights, scale, columns, condition, STEPS * float(speed))


def _matrix(arrays: Mapping[str, Array], name: str) -> Array:
    matrix = arrays.get(name, np.zeros([0, 0], np.float32))
    if matrix.ndim != 2:  # noqa: PLR2004
        raise ValueError(f"{name}: expected a matrix, found {matrix.shape}")
    return matrix


def refuse_own(prefix: str, inputs: Any) -> None:
    """Raises a ValueError for a network that is marked by `copies.inputs_with_own`."""
    if isinstance(inputs, dict) and inputs.get(OWN):
        raise ValueError(f"{prefix}: expected ReLU layers and a linear one, found a model of yours")


def weights_of(
    arrays: Mapping[str, Array], prefix: str, head: str, sizes: Sequence[int]
) -> list[Array]:
    """Returns kernel and bias of each layer of a network in a checkpoint, or a ValueError."""
    # `head` is the output layer, `sizes` are of inputs, each hidden layer, and outputs.
    names = [*(f"hidden_{index}" for index in range(len(sizes) - 2)), head]
    kernels = dict(zip(names, itertools.pairwise(sizes), strict=True))
    shapes = weight_shapes(f"{prefix}/", kernels)
    for name, expected in shapes.items():
        came = arrays[name].shape if name in arrays else "nothing"
        if came != expected:
            raise ValueError(f"{name}: expected {expected}, found {came}")
    return [arrays[name] for name in shapes]


def columns_of(inputs: Any) -> tuple[int, ...]:
    """Returns the observation columns that a checkpoint lists as inputs; empty for an extra."""
    listed = inputs.get("components") if isinstance(inputs, dict) else None
    columns = tuple(listed) if isinstance(listed, list) else ()
    return columns if all(type(each) is int and each >= 0 for each in columns) else ()
