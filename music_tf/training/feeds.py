"""What updates are fed: minibatches, or their indices where replay has a copy on the GPU."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from music_tf.networks.acting import Moments
from music_tf.replay.rows import Picks
from music_tf.types import ALIGNED, Array, Transition

_SHARED_BYTES = 100_000
"""Smallest array that shares its memory with TensorFlow."""
FRESH, RELABELLED = "fresh_condition", "relabelled"
"""Names in `noise`: conditions that are drawn anew, and which steps get them."""


class Batches(NamedTuple):
    """Inputs of all updates of one cycle; arrays are [U, W, ...]."""

    transitions: Transition
    inputs: Array  # [U, W, B, I], normalised, of the states before the actions
    next_inputs: Array  # [U, W, B, I]
    terms: Mapping[str, Mapping[str, np.ndarray]]  # [U * times of the term, W, ...]
    noise: Mapping[str, Array]

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, to be stored when a number is not finite."""
        named = {f"transitions.{name}": value for name, value in self.transitions._asdict().items()}
        for group in ("extras", "next_extras"):
            extras = named.pop(f"transitions.{group}")
            named |= {f"transitions.{group}.{name}": array for name, array in extras.items()}
        named |= {"inputs": self.inputs, "next_inputs": self.next_inputs, **self.noise}
        for term, arrays in self.terms.items():
            named |= {f"{term}.{name}": array for name, array in arrays.items()}
        return named


class Draws(NamedTuple):
    """Replaces `Batches` where replay has a copy on the GPU: random draws and running moments."""

    transitions: Picks  # [U, W, B]
    moments: Sequence[Moments]  # of observations and goals, [U, D]
    terms: Mapping[str, Mapping[str, Any]]  # [U * times of the term, W, ...]
    noise: Mapping[str, Array]

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, to be stored when a number is not finite."""
        named = {f"transitions.{n}": value for n, value in self.transitions._asdict().items()}
        for kind, moments in zip(("observation", "goal"), self.moments, strict=True):
            named |= {f"{kind}.{n}": value[0] for n, value in moments._asdict().items()}
        for term, drawn in self.terms.items():
            for name, value in drawn.items():
                fields = value._asdict() if isinstance(value, Picks) else {"": value}
                named |= {f"{term}.{name}{n and '.'}{n}": part for n, part in fields.items()}
        return named | dict(self.noise)


Feed: TypeAlias = Batches | Draws


class Schedules(NamedTuple):
    """Current values of scheduled weights; tensors, so that a new value does not retrace."""

    terms: Mapping[str, tf.Tensor]
    entropy: tf.Tensor
    bounds: tuple[tf.Tensor, tf.Tensor] | None = None  # of the TD target at these weights


def as_tensor(values: Any) -> tf.Tensor:
    """An array as a tensor; a large `aligned` one shares its memory, so nobody may write to it."""
    large = isinstance(values, np.ndarray) and values.nbytes >= _SHARED_BYTES
    if large and values.flags.carray and values.__array_interface__["data"][0] % ALIGNED == 0:
        return tf.experimental.dlpack.from_dlpack(values.__dlpack__())
    return tf.convert_to_tensor(values)


def rows_of_part(part: slice, updates: int, fed: Any) -> Any:
    """Returns the rows of nested arrays, one or several for each update, for the updates `part`."""
    if part == slice(0, updates):
        return fed

    def rows_of(values: np.ndarray) -> np.ndarray:
        times = len(values) // updates
        return values[part.start * times : part.stop * times]

    return tf.nest.map_structure(rows_of, fed)


def under_fresh_conditions(batch: Transition, noise: Mapping[str, Any]) -> Transition:
    """Replaces the condition of the relabelled steps of a minibatch of arrays or tensors."""
    if FRESH not in noise:
        return batch
    where: Any = np.where if isinstance(batch.skill, np.ndarray) else tf.where
    chosen = noise[RELABELLED][..., None] > 0.0
    return batch._replace(skill=where(chosen, noise[FRESH], batch.skill))
