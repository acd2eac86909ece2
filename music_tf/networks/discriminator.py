"""Names skills in plain numpy, with what a discriminator has learned: needs no TensorFlow."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_tf.types import Array


class Discriminator(NamedTuple):
    """A discriminator q(z | s) over K skills, as it was saved."""

    layers: Sequence[tuple[Array, Array]]
    """Kernel and bias of each, the hidden ones with a ReLU after them."""
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
        return len(self.layers[0][0]) - self.actions

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
        for kernel, bias in self.layers[:-1]:
            rows = np.maximum(rows @ kernel + bias, 0.0)
        kernel, bias = self.layers[-1]
        logits = rows @ kernel + bias
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
    sizes = [len(first), *hidden, skills]
    layers = []
    for index, shape in enumerate(itertools.pairwise(sizes)):
        layer = f"{prefix}/{f'hidden_{index}' if index < len(hidden) else 'logits'}"
        for part, expected in (("kernel", shape), ("bias", shape[1:])):
            found = arrays.get(f"{layer}/{part}")
            if found is None or found.shape != expected:
                came = "nothing" if found is None else found.shape
                raise ValueError(f"{layer}/{part}: expected {expected}, found {came}")
        layers.append((arrays[f"{layer}/kernel"], arrays[f"{layer}/bias"]))
    said = inputs if isinstance(inputs, dict) else {}
    listed = said.get("components")
    columns = tuple(listed) if isinstance(listed, list) else ()
    if not all(type(column) is int and column >= 0 for column in columns):
        columns = ()  # the name of what stands beside the observation
    scale, actions = arrays.get("scales/discriminator"), said.get("actions", 0)
    fits = type(actions) is int and 0 <= actions < len(first)
    fits = fits and (scale is None or scale.shape == (2, len(first)))
    fits = fits and len(columns) in (0, len(first) - actions)
    if not fits or said.get("state") not in ("current", "next"):
        raise ValueError(f"{prefix}: what it sees does not fit its {len(first)} inputs")
    after, blind = said["state"] == "next", said.get("blind") is True
    return Discriminator(layers, scale, columns, after, actions, blind)
