"""Acting in plain numpy: faster than a compiled call for a few rows, and without TensorFlow.

A `Snapshot` acts in training between updates, on actors, in saved runs, and in the file for robots,
into which `tools.portable` copies this module (so Python 3.9 must run it). A learner with another
action distribution adds its actor to `ACTORS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.settings import NormalizerConfig
from music_tf.types import Array, aligned, offsets

LOG_DEVIATION_RANGE = (-5.0, 2.0)
"""Range of a log-deviation that is scaled by tanh."""
CLIPPED_RANGE = (-20.0, 2.0)
"""Range of a log-deviation that is clipped."""
ENCODER = "encoder/"
"""Prefix of the weights of the task encoder."""
EXPLORER = "explorer/"
"""Prefix of the arrays of the model that chooses among random actions."""
LEAST_DEVIATION = 1e-3
"""Added to the softplus of a deviation."""
NO_GOAL = -1.0
"""What networks see as offset of the object where only a place of the hand counts."""
_MOMENTS = ("observation", "goal")
REACH = "reach"
"""Name of the columns of hand and object."""


class Moments(NamedTuple):
    """Mean and standard deviation that normalise an input."""

    mean: Array  # [D]
    deviation: Array  # [D], at least epsilon


class NetworkInputs(NamedTuple):
    """Makes inputs of actor and critics from observations, conditions and goals."""

    observation: Moments
    goal: Moments
    config: NormalizerConfig
    condition: int
    """Number of components of a condition that are inputs, `Config.seen_condition`."""
    reach: Array | None = None
    """Columns of hand and object, [2, H], where goals are seen as offsets (`replay.reach`)."""

    def __call__(self, observation: Array, goal: Array, skill: Array) -> Array:
        """Joins normalised observation, condition, and goal or offsets, [..., I]."""
        parts = [
            self._normalize(observation, self.observation),
            skill[..., : self.condition],
            self._goals(observation, goal),
        ]
        size = sum(part.shape[-1] for part in parts)
        out = aligned([*observation.shape[:-1], size], np.result_type(*parts))
        return np.concatenate(parts, axis=-1, out=out)

    def observations(self, values: Array) -> Array:
        return self._normalize(values, self.observation)

    def _goals(self, observation: Array, goal: Array) -> Array:
        """Normalises goals [..., G], or the offsets [..., 2 H] that they and places ask for."""
        if self.reach is None:
            return self._normalize(goal, self.goal)
        alone = goal.shape[-1] == self.reach.shape[-1]  # of the task
        goal, place = (goal, np.zeros_like(goal)) if alone else np.split(goal, 2, axis=-1)
        seen = self._normalize(offsets(self.reach, observation, goal, place), self.goal)
        seen[..., : goal.shape[-1]][place.any(axis=-1)] = NO_GOAL
        return seen

    def _normalize(self, values: Array, moments: Moments) -> Array:
        scaled = bounded(values, self.config)
        scaled -= moments.mean
        scaled /= moments.deviation
        return np.clip(scaled, -self.config.clip, self.config.clip, out=scaled)


class Snapshot(NamedTuple):
    """A copy of all that acting needs; it is sent to actors, lagged, frozen and exported."""

    actor: str
    """Name in `ACTORS`, from the settings of the learner."""
    weights: Mapping[str, Array]
    """Weights of the actor by name, as `actor/hidden_0/kernel`, in the order of its Keras model."""
    inputs: NetworkInputs
    prior: Array | None = None
    """Probabilities [K] of one-hot conditions in exploring episodes; None: uniform."""
    encoder: Mapping[str, Array] = MappingProxyType({})
    """Weights of the task encoder by name, `encoder/hidden_0/kernel`; empty without one."""
    explorer: Mapping[str, Array] = MappingProxyType({})
    """Arrays of the model that chooses among random actions, by name; empty without one."""

    @property
    def action_dim(self) -> int:
        return len(list(self.weights.values())[-1])

    def act(self, observation: Array, goal: Array, skill: Array, noise: Array | None) -> Array:
        """Returns actions [E, A]: samples with standard normal `noise` [E, A], or the mode."""
        inputs = self.inputs(observation, goal, skill)
        return ACTORS[self.actor].act(list(self.weights.values()), inputs, noise)


def arrays_of(snapshot: Snapshot) -> dict[str, Array]:
    """Returns the arrays of a snapshot by name: weights, moments as [2, D], and a prior."""
    stacked = {name: np.stack(getattr(snapshot.inputs, name)) for name in _MOMENTS}
    others = {"prior": snapshot.prior, REACH: snapshot.inputs.reach}
    present = {name: array for name, array in others.items() if array is not None}
    return {**snapshot.weights, **snapshot.encoder, **snapshot.explorer, **stacked, **present}


def snapshot_from(like: Snapshot, arrays: Mapping[str, Array]) -> Snapshot:
    """Inverts `arrays_of`: returns `like` with the given arrays."""
    observation, goal = (Moments(*arrays[name]) for name in _MOMENTS)
    reach = arrays.get(REACH) if like.inputs.reach is None else like.inputs.reach
    inputs = like.inputs._replace(observation=observation, goal=goal, reach=reach)
    weights, encoder, explorer = (
        {name: arrays[name] for name in part}
        for part in (like.weights, like.encoder, like.explorer)
    )
    return Snapshot(like.actor, weights, inputs, arrays.get("prior"), encoder, explorer)


def empty_snapshot(actor: str, names: Iterable[str], inputs: NetworkInputs) -> Snapshot:
    """Returns a snapshot with empty arrays of these names, as `arrays_of` names them."""
    groups: dict[str, dict[str, Array]] = {ENCODER: {}, EXPLORER: {}, "": {}}
    for name in names:
        if name not in (*_MOMENTS, "prior", REACH):
            prefix = next(prefix for prefix in groups if name.startswith(prefix))
            groups[prefix][name] = np.empty(0, np.float32)
    encoder, explorer, weights = groups.values()
    return Snapshot(actor, weights, inputs, encoder=encoder, explorer=explorer)


SKILLS = "skills/"
"""Prefix of the arrays of finished skills."""


class SkillSnapshots(NamedTuple):
    """Acts like one snapshot, but each skill has its own actor."""

    each: tuple[Snapshot, ...]

    @property
    def inputs(self) -> NetworkInputs:
        """Inputs of the first skill; the moments of other skills differ."""
        return self.each[0].inputs

    @property
    def action_dim(self) -> int:
        return self.each[0].action_dim

    def act(self, observation: Array, goal: Array, skill: Array, noise: Array | None) -> Array:
        """Returns actions [E, A]; last bits depend on the number of rows with the same skill."""
        numbers = skill.argmax(axis=-1)
        actions = np.empty([len(numbers), self.action_dim], np.float32)
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            drawn = None if noise is None else noise[rows]
            snapshot = self.each[number]
            actions[rows] = snapshot.act(observation[rows], goal[rows], skill[rows], drawn)
        return actions


def skill_arrays(snapshot: Snapshot) -> dict[str, Array]:
    """Returns the arrays of a finished skill, by their names in a checkpoint."""
    moments = {f"moments/{name}": np.stack(getattr(snapshot.inputs, name)) for name in _MOMENTS}
    return {f"{SKILLS}{name}": array for name, array in {**snapshot.weights, **moments}.items()}


def learned_skill(like: Snapshot, arrays: Mapping[str, Array], skill: int) -> Snapshot:
    """Returns the snapshot of one skill, from the `skill_arrays` of all skills, [K, ...]."""
    weights = {name: arrays[f"{SKILLS}{name}"][skill].copy() for name in like.weights}
    observation, goal = (Moments(*arrays[f"{SKILLS}moments/{n}"][skill].copy()) for n in _MOMENTS)
    inputs = like.inputs._replace(observation=observation, goal=goal)
    return like._replace(weights=weights, inputs=inputs)


class SnapshotPolicy:
    """Acts on `rows` at a time: last bits are then equal on any number of ranks; None: on all."""

    def __init__(
        self, snapshot: Snapshot | SkillSnapshots, sample: bool = False, rows: int | None = None
    ) -> None:
        self.snapshot, self._sample, self._rows = snapshot, sample, rows

    def __call__(self, observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        step = self._rows or len(observation)
        actions = []
        for start in range(0, len(observation), step):
            part = slice(start, start + step)
            drawn = noise[part] if self._sample else None
            actions.append(self.snapshot.act(observation[part], goal[part], skill[part], drawn))
        return np.concatenate(actions)


class Actor(NamedTuple):
    """The output layers of one kind of actor, and its action distribution."""

    heads: Callable[[int, int], Mapping[str, tuple[int, int]]]
    """Maps the width of the last hidden layer and the size of an action to the kernel shapes of the
    layers after it, by name in the order of the Keras model."""
    act: Callable[[Sequence[Array], Array, Array | None], Array]
    """Maps weights, inputs [E, I] and standard normal noise [E, A] to actions [E, A]; without noise
    to the mode."""
    mode: Callable[[Any], Array] | None = None
    """Maps the outputs of the Keras model to the mode, for a comparison with `act` before training;
    None: they are not compared."""


def actor_shapes(
    actor: str, input_dim: int, hidden_sizes: Sequence[int], action_dim: int
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of an actor's weights by name, in the order of its Keras model."""
    sizes = [input_dim, *hidden_sizes]
    kernels = {f"hidden_{n}": (sizes[n], width) for n, width in enumerate(hidden_sizes)}
    kernels |= ACTORS[actor].heads(hidden_sizes[-1], action_dim)
    return weight_shapes("actor/", kernels)


def weight_shapes(
    prefix: str, kernels: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of kernels and biases of layers, by name after a prefix."""
    return {
        f"{prefix}{layer}/{part}": shape
        for layer, kernel in kernels.items()
        for part, shape in (("kernel", kernel), ("bias", kernel[1:]))
    }


def deterministic_action(
    weights: Sequence[Array], inputs: Array, noise: Array | None = None
) -> Array:
    """Returns the actions [E, A] of a deterministic actor for its inputs [E, I]."""
    return np.tanh(mlp(weights, inputs))


class Gaussian(NamedTuple):
    """One kind of squashed Gaussian actor."""

    features: bool
    """Whether there is a linear layer before the heads."""
    deviation: str
    """How the network's output w becomes the deviation: `tanh`, `softplus` or `clip`."""

    def act(self, weights: Sequence[Array], inputs: Array, noise: Array | None) -> Array:
        """Returns the squashed mean, or a sample if noise is given, [E, A]."""
        depth = len(weights) // 2 - (3 if self.features else 2)
        hidden = _hidden(weights, inputs, depth)
        if self.features:
            hidden = _dense(weights, hidden, depth)
        heads = weights[-4:]
        raw = _dense(heads, hidden, 1)
        if noise is None:
            return np.tanh(raw)
        return np.tanh(raw + self._scale(_dense(heads, hidden, 0)) * noise)

    def _scale(self, outputs: Array) -> Array:
        if self.deviation == "softplus":
            return np.logaddexp(outputs, np.float32(0.0)) + np.float32(LEAST_DEVIATION)
        if self.deviation == "clip":
            return np.exp(np.clip(outputs, *CLIPPED_RANGE))
        low, high = LOG_DEVIATION_RANGE
        return np.exp(low + 0.5 * (high - low) * (np.tanh(outputs) + 1.0))

    def output_of(self, log_deviation: float) -> float:
        """Returns the network's output w for which the logarithm of `_scale` is this."""
        if self.deviation == "softplus":
            return math.log(math.expm1(math.exp(log_deviation) - LEAST_DEVIATION))
        if self.deviation == "clip":
            return log_deviation
        low, high = LOG_DEVIATION_RANGE
        return math.atanh(2.0 * (log_deviation - low) / (high - low) - 1.0)

    def heads(self, width: int, actions: int) -> dict[str, tuple[int, int]]:
        before = {"features": (width, width)} if self.features else {}
        return {**before, "log_deviation": (width, actions), "mean": (width, actions)}


GAUSSIANS = {
    "gaussian": Gaussian(features=True, deviation="tanh"),
    "gaussian_softplus": Gaussian(features=True, deviation="softplus"),
    "gaussian_clip": Gaussian(features=True, deviation="clip"),
    "gaussian_plain": Gaussian(features=False, deviation="tanh"),
    "gaussian_plain_softplus": Gaussian(features=False, deviation="softplus"),
    "gaussian_plain_clip": Gaussian(features=False, deviation="clip"),
}


def categorical_action(weights: Sequence[Array], inputs: Array, noise: Array | None) -> Array:
    """Returns the likeliest choice, or a sample by normal noise, as a one-hot vector [E, K]."""
    logits = mlp(weights, inputs)
    if noise is not None:
        uniform = np.clip(0.5 * _erfc(-noise / math.sqrt(2.0)), 1e-12, 1.0 - 1e-7)
        logits = logits - np.log(-np.log(uniform))  # Gumbel noise, whose maximum is a sample
    return likeliest(logits)


def likeliest(logits: Any) -> Array:
    """Returns the choice with the largest logit as a one-hot vector, [E, K]."""
    return np.asarray(np.eye(logits.shape[-1], dtype=np.float32)[np.argmax(logits, axis=-1)])


_erfc = np.vectorize(math.erfc, otypes=[np.float64])

ACTORS: dict[str, Actor] = {
    "categorical": Actor(
        lambda width, choices: {"choice": (width, choices)}, categorical_action, likeliest
    ),
    "deterministic": Actor(
        lambda width, actions: {"action": (width, actions)}, deterministic_action, np.asarray
    ),
    **{
        name: Actor(gaussian.heads, gaussian.act, lambda outputs: np.tanh(outputs[0]))
        for name, gaussian in GAUSSIANS.items()
    },
}
"""Actors by name, for the setting `actor` of a learner."""


def mlp(weights: Sequence[Array], inputs: Array) -> Array:
    """Applies hidden layers and a linear output layer to inputs [B, I]; returns [B, D]."""
    depth = len(weights) // 2 - 1
    return _dense(weights, _hidden(weights, inputs, depth), depth)


def gru(weights: Sequence[Array], inputs: Array) -> Array:
    """Applies hidden layers, a GRU and a linear layer to a sequence [N, I]; returns [D]."""
    *layers, kernel, recurrent, biases, head, head_bias = weights
    rows = _hidden(layers, inputs, len(layers) // 2) @ kernel + biases[0]
    state = np.zeros(len(recurrent), np.float32)
    for step in rows:
        update, reset, new = np.split(step, 3)
        old_update, old_reset, old = np.split(state @ recurrent + biases[1], 3)
        kept, seen = _sigmoid(update + old_update), _sigmoid(reset + old_reset)
        state = kept * state + (1.0 - kept) * np.tanh(new + seen * old)
    return state @ head + head_bias


def lstm(weights: Sequence[Array], inputs: Array) -> Array:
    """Applies hidden layers, an LSTM and a linear layer as `gru` does."""
    *layers, kernel, recurrent, bias, head, head_bias = weights
    rows = _hidden(layers, inputs, len(layers) // 2) @ kernel + bias
    state = cell = np.zeros(len(recurrent), np.float32)
    for step in rows:
        write, keep, new, show = np.split(step + state @ recurrent, 4)
        cell = _sigmoid(keep) * cell + _sigmoid(write) * np.tanh(new)
        state = _sigmoid(show) * np.tanh(cell)
    return state @ head + head_bias


def _sigmoid(values: Array) -> Array:
    """Applies the logistic function, which overflows nowhere in this form."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)), np.float32)


def bounded(values: Array, config: NormalizerConfig) -> Array:
    """Clips raw values to `input_clip`, before they enter moments or are normalised."""
    return np.clip(values, -config.input_clip, config.input_clip)


def _hidden(weights: Sequence[Array], inputs: Array, layers: int) -> Array:
    for index in range(layers):
        inputs = np.maximum(_dense(weights, inputs, index), 0.0)
    return inputs


def _dense(weights: Sequence[Array], inputs: Array, index: int) -> Array:
    return inputs @ weights[2 * index] + weights[2 * index + 1]
