"""Acts in plain numpy: a few rows cost far less than a compiled call, and need no TensorFlow.

What acts is a `Snapshot`, whoever holds it: training between two updates, a rank that only plays,
a saved run. A learner with an action distribution of its own adds its actor to `ACTORS`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.config.settings import NormalizerConfig
from music_tf.types import Array

LOG_DEVIATION_RANGE = (-5.0, 2.0)
"""Bounds of a Gaussian actor's log-deviation before squashing."""


class Moments(NamedTuple):
    """What a network normalises its input with."""

    mean: Array  # [D]
    deviation: Array  # [D], at least epsilon


class NetworkInputs(NamedTuple):
    """How observations, conditions and goals become what actor and critics read."""

    observation: Moments
    goal: Moments
    config: NormalizerConfig

    def __call__(self, observation: Array, goal: Array, skill: Array) -> Array:
        """Joins normalised observation, condition and normalised goal, [..., O + K + G]."""
        parts = [
            self._normalize(observation, self.observation),
            skill,
            self._normalize(goal, self.goal),
        ]
        return np.concatenate(parts, axis=-1)

    def _normalize(self, values: Array, moments: Moments) -> Array:
        scaled = (bounded(values, self.config) - moments.mean) / moments.deviation
        clipped: Array = np.clip(scaled, -self.config.clip, self.config.clip)
        return clipped


class Snapshot(NamedTuple):
    """All that acting needs, by itself: what is sent to actors, lagged, frozen and exported."""

    actor: str
    """Which of `ACTORS`; a learner's settings name it."""
    weights: Mapping[str, Array]
    """Of the actor by name, `actor/hidden_0/kernel`, in the order of its Keras model."""
    inputs: NetworkInputs

    @property
    def action_dim(self) -> int:
        """Size A of an action."""
        return len(list(self.weights.values())[-1])

    def act(self, observation: Array, goal: Array, skill: Array, noise: Array | None) -> Array:
        """Returns actions [E, A]; `noise` [E, A] draws from a stochastic policy, None does not."""
        given = self.inputs(observation, goal, skill)
        return ACTORS[self.actor].act(list(self.weights.values()), given, noise)


def arrays_of(snapshot: Snapshot) -> dict[str, Array]:
    """Returns the numbers of a snapshot by name: weights, and moments as [2, D]."""
    moments = {"observation": snapshot.inputs.observation, "goal": snapshot.inputs.goal}
    return {**snapshot.weights, **{name: np.stack(one) for name, one in moments.items()}}


def snapshot_from(like: Snapshot, arrays: Mapping[str, Array]) -> Snapshot:
    """Returns a snapshot of the kind of another one, with what `arrays_of` has returned."""
    observation, goal = (Moments(*arrays[name]) for name in ("observation", "goal"))
    inputs = like.inputs._replace(observation=observation, goal=goal)
    return like._replace(weights={name: arrays[name] for name in like.weights}, inputs=inputs)


@dataclasses.dataclass(frozen=True)
class SnapshotPolicy:
    """A snapshot as a policy that `rollout.play` can play, here or on another rank."""

    snapshot: Snapshot
    sample: bool
    rows: int | None

    def __call__(self, observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        """Returns actions [E, A]."""
        step = self.rows or len(observation)
        parts = (slice(start, start + step) for start in range(0, len(observation), step))
        return np.concatenate(
            [
                self.snapshot.act(
                    observation[part], goal[part], skill[part], noise[part] if self.sample else None
                )
                for part in parts
            ]
        )


def policy_of(snapshot: Snapshot, sample: bool = False, rows: int | None = None) -> SnapshotPolicy:
    """Makes a snapshot a policy that `rollout.play` can play.

    The last bit of a matrix product depends on how many rows it has, and contacts amplify it. With
    a fixed number of `rows` at a time a worker acts alike on any number of ranks. With `sample`
    actions are drawn from a stochastic policy instead of taking its mean.
    """
    return SnapshotPolicy(snapshot, sample, rows)


class Actor(NamedTuple):
    """How the actor of one kind of learner acts."""

    heads: Callable[[int, int], Mapping[str, tuple[int, int]]]
    """Kernel shapes of the layers after the hidden ones, by name in the order of the Keras model,
    for the width of the last hidden layer and the size of an action."""
    act: Callable[[Sequence[Array], Array, Array | None], Array]
    """Actions [E, A] of weights, inputs [E, I] and standard normal noise [E, A], or None for the
    most likely action."""


def actor_shapes(
    actor: str, input_dim: int, hidden_sizes: Sequence[int], action_dim: int
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of an actor's weights by name, in the order of its Keras model."""
    sizes = itertools.pairwise([input_dim, *hidden_sizes])
    kernels = {f"hidden_{index}": shape for index, shape in enumerate(sizes)}
    kernels |= ACTORS[actor].heads(hidden_sizes[-1], action_dim)
    return {
        f"actor/{layer}/{part}": shape
        for layer, kernel in kernels.items()
        for part, shape in (("kernel", kernel), ("bias", kernel[1:]))
    }


def deterministic_action(
    weights: Sequence[Array], inputs: Array, noise: Array | None = None
) -> Array:
    """Returns the actions [E, A] of a deterministic actor for its inputs [E, I]."""
    del noise
    depth = len(weights) // 2 - 1
    action: Array = np.tanh(_dense(weights, _hidden(weights, inputs, depth), depth))
    return action


def gaussian_action(weights: Sequence[Array], inputs: Array, noise: Array | None) -> Array:
    """Returns the squashed mean of a Gaussian actor, or a sample where noise is given, [E, A]."""
    depth = len(weights) // 2 - 3
    features = _dense(weights, _hidden(weights, inputs, depth), depth)
    return _gaussian_heads(weights[-4:], features, noise)


def plain_gaussian_action(weights: Sequence[Array], inputs: Array, noise: Array | None) -> Array:
    """As `gaussian_action`, of an actor without the linear layer before its heads."""
    hidden = _hidden(weights, inputs, len(weights) // 2 - 2)
    return _gaussian_heads(weights[-4:], hidden, noise)


ACTORS: dict[str, Actor] = {
    "deterministic": Actor(
        lambda width, actions: {"action": (width, actions)}, deterministic_action
    ),
    "gaussian": Actor(
        lambda width, actions: {
            "features": (width, width),
            "log_deviation": (width, actions),
            "mean": (width, actions),
        },
        gaussian_action,
    ),
    "gaussian_plain": Actor(
        lambda width, actions: {"log_deviation": (width, actions), "mean": (width, actions)},
        plain_gaussian_action,
    ),
}
"""Actors by name; a learner's settings say which one is theirs."""


def bounded(values: Array, config: NormalizerConfig) -> Array:
    """Bounds raw values, before they are counted and before they are normalised."""
    within: Array = np.clip(values, -config.input_clip, config.input_clip)
    return within


def _gaussian_heads(heads: Sequence[Array], features: Array, noise: Array | None) -> Array:
    """Squashes the mean, or a sample; the heads are those of log-deviation and mean."""
    raw = _dense(heads, features, 1)
    if noise is None:
        return np.tanh(raw)
    low, high = LOG_DEVIATION_RANGE
    squashed = np.tanh(_dense(heads, features, 0))
    deviation = np.exp(low + 0.5 * (high - low) * (squashed + 1.0))
    return np.tanh(raw + deviation * noise)


def _hidden(weights: Sequence[Array], inputs: Array, layers: int) -> Array:
    """Applies the first layers of a network, each followed by a ReLU."""
    for index in range(layers):
        inputs = np.maximum(_dense(weights, inputs, index), 0.0)
    return inputs


def _dense(weights: Sequence[Array], inputs: Array, index: int) -> Array:
    """Applies the layer `index` of a network, without an activation."""
    outputs: Array = inputs @ weights[2 * index] + weights[2 * index + 1]
    return outputs
