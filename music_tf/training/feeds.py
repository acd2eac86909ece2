"""What updates are fed: minibatches, or what is drawn of them where a device looks them up."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from music_tf.networks.acting import Moments
from music_tf.replay.rows import Picks
from music_tf.types import ALIGNED, Array, Transition

_SHARED_BYTES = 100_000
"""From here on an array is shared with TensorFlow, where it can be."""
FRESH, RELABELLED = "fresh_condition", "relabelled"
"""Names among the noise of an update: conditions, and whether steps are seen under them."""


class Feed(NamedTuple):
    """All that the updates of one cycle need; arrays are [U, W, ...]."""

    transitions: Transition
    inputs: Array  # [U, W, B, I], normalised, of the states before the actions
    next_inputs: Array  # [U, W, B, I]
    terms: Mapping[str, Mapping[str, np.ndarray]]  # [U * times of the term, W, ...]
    noise: Mapping[str, Array]

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, as evidence of numbers that went bad."""
        named = {f"transitions.{name}": value for name, value in self.transitions._asdict().items()}
        for group in ("extras", "next_extras"):
            extras = named.pop(f"transitions.{group}")
            named |= {f"transitions.{group}.{name}": array for name, array in extras.items()}
        named |= {"inputs": self.inputs, "next_inputs": self.next_inputs, **self.noise}
        for term, arrays in self.terms.items():
            named |= {f"{term}.{name}": array for name, array in arrays.items()}
        return named


class Draws(NamedTuple):
    """What stands for a `Feed` where replay lies on a device: all that is drawn, or has moved."""

    transitions: Picks  # [U, W, B]
    moments: Sequence[Moments]  # of observations and goals, [U, D]
    terms: Mapping[str, Mapping[str, Any]]  # [U * times of the term, W, ...]
    noise: Mapping[str, Array]

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, as evidence of numbers that went bad."""
        named = {f"transitions.{n}": value for n, value in self.transitions._asdict().items()}
        for kind, moments in zip(("observation", "goal"), self.moments, strict=True):
            named |= {f"{kind}.{n}": value[0] for n, value in moments._asdict().items()}
        for term, drawn in self.terms.items():
            for name, value in drawn.items():
                fields = value._asdict() if isinstance(value, Picks) else {"": value}
                named |= {f"{term}.{name}{n and '.'}{n}": part for n, part in fields.items()}
        return named | dict(self.noise)


class Schedules(NamedTuple):
    """Scheduled weights at present, as tensors so that a new value does not retrace."""

    terms: Mapping[str, tf.Tensor]
    entropy: tf.Tensor


def as_tensor(values: Any) -> tf.Tensor:
    """Returns an array as a tensor: a large one that is `aligned` shares its memory with it.

    So nobody may write into such an array while the tensor is used.
    """
    large = isinstance(values, np.ndarray) and values.nbytes >= _SHARED_BYTES
    if large and values.flags.carray and values.__array_interface__["data"][0] % ALIGNED == 0:
        return tf.experimental.dlpack.from_dlpack(values.__dlpack__())
    return tf.convert_to_tensor(values)


def even_parts(count: int, parts: int) -> Iterator[slice]:
    """Yields slices of about as many of a number of rows, of at most two lengths."""
    size = math.ceil(count / parts)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def rows_of_part(part: slice, updates: int, fed: Any) -> Any:
    """Returns what a part of the updates reads; some take several rows each."""
    if part == slice(0, updates):
        return fed

    def own(values: np.ndarray) -> np.ndarray:
        times = len(values) // updates
        return values[part.start * times : part.stop * times]

    return tf.nest.map_structure(own, fed)


def under_fresh_conditions(batch: Transition, noise: Mapping[str, Any]) -> Transition:
    """Returns a minibatch of which some steps have a fresh condition; numpy stays numpy."""
    if FRESH not in noise:
        return batch
    where: Any = np.where if isinstance(batch.skill, np.ndarray) else tf.where
    chosen = noise[RELABELLED][..., None] > 0.0
    return batch._replace(skill=where(chosen, noise[FRESH], batch.skill))
