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
    """Returns the raw reward of each transition, shape [W, B]."""
    return float32(f"reward {term.name}", term.reward(weights, batch, feed), batch.reward.shape)


def gate_of(term: RewardTerm, batch: Transition) -> tf.Tensor | None:
    """Returns the factor on a term's weight, [W, B], or None."""
    gate = term.gate(batch)
    return gate if gate is None else float32(f"gate of {term.name}", gate, batch.reward.shape)


def measures_of(
    term: RewardTerm, reward: tf.Tensor, batch: Transition, feed: Feed
) -> dict[str, tf.Tensor]:
    """Returns the metrics of a term on a minibatch, each [W]."""
    return _metrics(term, term.measures(reward, batch, feed), reward.shape[:1])


def loss_of(
    term: RewardTerm, weights: Weights, feed: Feed, workers: int
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Returns the loss of a term, [] or [W], and its metrics, each [W]."""
    answer: Any = term.loss(weights, feed)
    if not isinstance(answer, tuple) or len(answer) != 2:  # noqa: PLR2004
        raise UsageError(f"loss of {term.name}: expected (loss, metrics), got {answer!r:.80}")
    loss = float32(f"loss of {term.name}", answer[0], [], [workers])
    return loss, _metrics(term, answer[1], [workers])


def priorities_of(
    term: RewardTerm, weights: Weights, episodes: Episodes, worker: int, cycle: int
) -> Array:
    """Returns a worker's priorities of its fresh episodes, [E]."""
    priorities = np.asarray(term.priorities(weights, episodes, worker, cycle))
    count = len(episodes.length)
    if came := instead_of_numbers(priorities, (count,)):
        raise UsageError(f"priorities of {term.name}: expected {count} finite numbers, got {came}")
    return priorities


def prior_of(term: RewardTerm, size: int) -> Array | None:
    """Returns the probabilities of `size` one-hot conditions, [K], with sum 1; None: uniform."""
    answer = term.prior()
    if answer is None:
        return None
    prior = np.asarray(answer)
    came = instead_of_numbers(prior, (size,))
    if not came and (prior.min() < 0.0 or abs(prior.sum() - 1.0) > _ROUNDING):
        came = f"{prior.tolist()!r:.80}"
    if came:
        raise UsageError(
            f"prior of {term.name}: expected {size} probabilities that sum to 1, got {came}"
        )
    return prior.astype(np.float32)


def heldout_of(term: RewardTerm, weights: Weights, episodes: Episodes) -> Metrics:
    answer: Any = term.heldout(weights, episodes)
    try:
        return dict(zip(answer, map(float, answer.values()), strict=True))
    except (AttributeError, TypeError, ValueError) as error:
        expected = f"heldout of {term.name}: expected numbers by name"
        raise UsageError(f"{expected}, got {answer!r:.80}") from error


def check_feed(name: str, feed: Mapping[str, Any], rows: int) -> None:
    for key, value in feed.items():
        for shape in map(np.shape, tf.nest.flatten(value)):
            if shape[:1] != (rows,):
                raise UsageError(
                    f"feed {key} of {name}: expected {rows} rows, one an update, got shape {shape}"
                )


def float32(what: str, value: Any, *shapes: Sequence[int]) -> Any:
    """Returns a tensor or an array of float32 and one of `shapes`; messages call it `what`."""
    kind, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if kind is not None and tf.as_dtype(kind) == tf.float32:
        static = tf.TensorShape(shape)
        fitting = [each for each in shapes if static.is_compatible_with(each)]
        if fitting and static.is_fully_defined():
            return value
        if fitting:  # the graph checks what tracing does not know
            return tf.ensure_shape(value, fitting[0])
    expected = " or ".join(str(tuple(each)) for each in shapes)
    came = f"{value!r:.80}" if kind is None else f"{tf.as_dtype(kind).name} {shape}"
    raise UsageError(f"{what}: expected float32 {expected}, got {came}")


def _metrics(term: RewardTerm, answer: Any, shape: Sequence[int]) -> dict[str, tf.Tensor]:
    if not isinstance(answer, Mapping):
        raise UsageError(f"metrics of {term.name}: expected them by name, got {answer!r:.80}")
    return {name: float32(f"{name} of {term.name}", value, shape) for name, value in answer.items()}
