"""Checks shapes and types of what a reward term returns.

TensorFlow would broadcast [W, B, 1] against [W, B] silently. Tensors of known shape are checked
without a new operation in the graph, which would change the last bits of results.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from music_tf.errors import UsageError
from music_tf.intrinsic.base import Feed, RewardTerm
from music_tf.networks.parameters import Weights
from music_tf.types import Array, Episodes, Metrics, Transition, instead_of_numbers

_ROUNDING = 3e-4
"""Largest difference from 1 of a sum of probabilities."""


def reward_of(term: RewardTerm, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
    """Returns the raw reward of each transition, shape [W, B]; raises as `float32`."""
    found = term.reward(weights, batch, feed)
    return float32(f"reward {term.name}", found, batch.reward.shape)


def gate_of(term: RewardTerm, batch: Transition) -> tf.Tensor | None:
    """Returns the factor on a term's weight, [W, B], or None; raises as `float32`."""
    found = term.gate(batch)
    return found if found is None else float32(f"gate of {term.name}", found, batch.reward.shape)


def measures_of(
    term: RewardTerm, reward: tf.Tensor, batch: Transition, feed: Feed
) -> dict[str, tf.Tensor]:
    """Returns the metrics of a term on a minibatch, each [W]; raises as `float32`."""
    return _metrics(term, term.measures(reward, batch, feed), reward.shape[:1])


def loss_of(
    term: RewardTerm, weights: Weights, feed: Feed, workers: int
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Returns the loss of a term, [] or [W], and its metrics, each [W]; raises as `float32`."""
    answer: Any = term.loss(weights, feed)
    if not isinstance(answer, tuple) or len(answer) != 2:  # noqa: PLR2004
        raise UsageError(f"loss of {term.name}: expected (loss, metrics), got {answer!r:.80}")
    loss = float32(f"loss of {term.name}", answer[0], [], [workers])
    return loss, _metrics(term, answer[1], [workers])


def priorities_of(
    term: RewardTerm, weights: Weights, episodes: Episodes, worker: int, cycle: int
) -> Array:
    """Returns a worker's priorities of its fresh episodes, [E], or refuses the term's answer."""
    found = np.asarray(term.priorities(weights, episodes, worker, cycle))
    count = len(episodes.length)
    if came := instead_of_numbers(found, (count,)):
        raise UsageError(f"priorities of {term.name}: expected {count} finite numbers, got {came}")
    return found


def prior_of(term: RewardTerm, size: int) -> Array | None:
    """Returns the probabilities of `size` one-hot conditions, [K], with sum 1; None: uniform."""
    found = term.prior()
    if found is None:
        return None
    chances = np.asarray(found)
    came = instead_of_numbers(chances, (size,))
    if not came and (chances.min() < 0.0 or abs(chances.sum() - 1.0) > _ROUNDING):
        came = f"{chances.tolist()!r:.80}"
    if came:
        raise UsageError(
            f"prior of {term.name}: expected {size} probabilities that sum to 1, got {came}"
        )
    return chances.astype(np.float32)


def heldout_of(term: RewardTerm, weights: Weights, episodes: Episodes) -> Metrics:
    """Returns `RewardTerm.heldout`; refuses what is not numbers by name."""
    found: Any = term.heldout(weights, episodes)
    try:
        return dict(zip(found, map(float, found.values()), strict=True))
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"heldout of {term.name}: expected numbers by name, got {found!r:.80}"
        ) from error


def check_feed(name: str, feed: Mapping[str, Any], rows: int) -> None:
    """Refuses a term's feed in which an array does not have `rows` rows."""
    for key, value in feed.items():
        for part in tf.nest.flatten(value):
            came = np.shape(part) if part is not None else None
            if not came or came[0] != rows:
                shown = "nothing" if came is None else f"shape {list(came)}"
                raise UsageError(
                    f"feed {key} of {name}: expected {rows} rows, one an update, got {shown}"
                )


def float32(what: str, value: Any, *shapes: Sequence[int]) -> Any:
    """Returns a tensor or an array of float32 and one of `shapes`; messages call it `what`."""
    # If the shape is unknown while tracing, the graph checks it.
    kind, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    wanted = " or ".join(str(list(each)) for each in shapes)
    if kind is None or shape is None:
        came = "nothing" if value is None else f"{value!r:.80}"
    else:
        known = tf.TensorShape(shape)
        if tf.as_dtype(kind) == tf.float32 and any(map(known.is_compatible_with, shapes)):
            if known.is_fully_defined():
                return value
            fitting = next(each for each in shapes if known.is_compatible_with(each))
            return tf.ensure_shape(value, fitting)
        name = tf.as_dtype(kind).name
        listed = "of unknown shape" if known.rank is None else str(known.as_list())
        came = listed if name == "float32" else f"{name} {listed}"
    raise UsageError(f"{what}: expected float32 {wanted}, got {came}")


def _metrics(term: RewardTerm, found: Any, each: Sequence[int]) -> dict[str, tf.Tensor]:
    if not isinstance(found, Mapping):
        raise UsageError(f"metrics of {term.name}: expected them by name, got {found!r:.80}")
    return {name: float32(f"{name} of {term.name}", value, each) for name, value in found.items()}
