"""Names skills in plain numpy, with what a discriminator has learned: needs no TensorFlow."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.networks.acting import mlp, weight_shapes
from music_tf.types import Array


class Discriminator(NamedTuple):
    """A discriminator q(z | s) over K skills, as it was saved."""

    weights: Sequence[Array]
    """Kernels and biases of its layers in turn, the hidden ones with a ReLU after them."""
    scale: Array | None
    """Centre and unit of what it sees, [2, D]; None where that enters raw."""
    columns: tuple[int, ...]
    """Columns of the observation; empty where the descriptor is an extra."""
    after: bool
    """Whether it looks at the state after an action, or at the one before."""
    actions: int = 0
    """Numbers A of the action that it sees as well."""
    blind: bool = False
    """Whether it sees zeros in place of the state."""

    @property
    def size(self) -> int:
        """How many numbers D it sees of a state."""
        return len(self.weights[0]) - self.actions

    def log_likelihood(self, seen: Array, action: Array | None = None) -> Array:
        """Returns log q(z | s) in nats for each skill, [..., K].

        Args:
            seen: Of the state, [..., D]; of any size for one that is blind.
            action: Taken there, [..., A]; counts where actions are seen.
        """
        rows = np.zeros((*seen.shape[:-1], self.size), np.float32) if self.blind else seen
        if self.actions and action is not None:
            rows = np.concatenate([rows, action], axis=-1)
        rows = rows if self.scale is None else (rows - self.scale[0]) / self.scale[1]
        logits = mlp(self.weights, rows)
        apart = logits - logits.max(axis=-1, keepdims=True)
        found: Array = apart - np.log(np.exp(apart).sum(axis=-1, keepdims=True))
        return found


def discriminator_of(
    arrays: Mapping[str, Array], inputs: Any, hidden: Sequence[int], skills: int
) -> Discriminator | None:
    """Returns the discriminator of a checkpoint; None where it holds none.

    Args:
        arrays: Of the checkpoint, `parameters/discriminator/...` and `scales/discriminator`.
        inputs: What the checkpoint says that it sees: `components`, `state`, and perhaps `actions`
            and `blind`.
        hidden: Units of its hidden layers.
        skills: How many it tells apart.

    Raises:
        ValueError: It is not one of this run; the text names what does not fit.
    """
    prefix = "parameters/discriminator"
    if not any(name.startswith(f"{prefix}/") for name in arrays):
        return None
    first = arrays.get(f"{prefix}/hidden_0/kernel", np.zeros([0, 0], np.float32))
    weights = weights_of(arrays, prefix, "logits", [len(first), *hidden, skills])
    said = inputs if isinstance(inputs, dict) else {}
    columns = columns_of(said)
    scale, actions = arrays.get("scales/discriminator"), said.get("actions", 0)
    fits = type(actions) is int and 0 <= actions < len(first)
    fits = fits and (scale is None or scale.shape == (2, len(first)))
    fits = fits and len(columns) in (0, len(first) - actions)
    if not fits or said.get("state") not in ("current", "next"):
        raise ValueError(f"{prefix}: what it sees does not fit its {len(first)} inputs")
    after, blind = said["state"] == "next", said.get("blind") is True
    return Discriminator(weights, scale, columns, after, actions, blind)


def weights_of(
    arrays: Mapping[str, Array], prefix: str, head: str, sizes: Sequence[int]
) -> list[Array]:
    """Returns kernel and bias of each layer of a network in a checkpoint, one after the other.

    Args:
        arrays: Of the checkpoint.
        prefix: How their names begin.
        head: Name of the layer after the hidden ones.
        sizes: Inputs, units of the hidden layers, and outputs.

    Raises:
        ValueError: One is missing or of another shape; the text names it.
    """
    names = [*(f"hidden_{index}" for index in range(len(sizes) - 2)), head]
    kernels = dict(zip(names, itertools.pairwise(sizes), strict=True))
    shapes = weight_shapes(f"{prefix}/", kernels)
    for name, expected in shapes.items():
        found = arrays.get(name)
        if found is None or found.shape != expected:
            came = "nothing" if found is None else found.shape
            raise ValueError(f"{name}: expected {expected}, found {came}")
    return [arrays[name] for name in shapes]


def columns_of(inputs: Any) -> tuple[int, ...]:
    """Returns the columns of an observation that a checkpoint says a network sees.

    None where it sees all of them, or an extra, whose name then stands there.
    """
    listed = inputs.get("components") if isinstance(inputs, dict) else None
    columns = tuple(listed) if isinstance(listed, list) else ()
    known = all(type(column) is int and column >= 0 for column in columns)
    return columns if known else ()
