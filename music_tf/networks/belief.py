"""The belief about a task, inferred from a context in plain numpy.

It is the same computation as `losses.posterior` and the encoder of a learner, without TensorFlow,
for actors, saved policies and, copied as `networks.acting` is, robots.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from music_tf.config.agents import GRU, LEAST_PRECISION, LEAST_VARIANCE, LSTM, MLP, Inference
from music_tf.networks.acting import ENCODER, NetworkInputs, gru, lstm, mlp, weight_shapes
from music_tf.types import Array

_NETWORKS: dict[str, Any] = {MLP: mlp, GRU: gru, LSTM: lstm}
"""Encoders of the package; any other is a user's function."""


class Steps(NamedTuple):
    """Steps in one task, the possible inputs of an encoder."""

    observation: Array  # [..., O]
    action: Array  # [..., A]
    reward: Array  # [...], the environment's own
    next_observation: Array  # [..., O]
    next_extras: Mapping[str, Array] = MappingProxyType({})
    """Extras of the state after each step by name, [..., D]."""


class Belief(NamedTuple):
    """A Gaussian over latents; with variance 0 it always draws its mean."""

    mean: Array  # [L]
    variance: Array  # [L], marginal
    spread: Array | None = None
    """Matrix that noise is multiplied by if the covariance is full, [L, L]."""

    def draw(self, noise: Array) -> Array:
        spread = self.spread
        away = np.sqrt(self.variance) * noise if spread is None else noise @ spread
        return (self.mean + away).astype(np.float32)


class Encoder(NamedTuple):
    """Infers beliefs from contexts, which are rows of `context_rows`."""

    weights: Mapping[str, Array]
    """By name, in the order of `encoder_shapes`."""
    inference: Inference

    @property
    def prior(self) -> Belief:
        """The belief without a context: N(0, I), or 0 for deterministic latents."""
        zeros = np.zeros(self.inference.latent, np.float32)
        return Belief(zeros, zeros if self.inference.deterministic else zeros + np.float32(1.0))

    def __call__(self, context: Array) -> Belief:
        """Returns the posterior for a context [N, C], N >= 1; only a user's encoder needs TF."""
        outputs, latent = self._outputs(context), self.inference.latent
        if self.inference.deterministic:
            mean: Array = outputs.mean(axis=0)
            return Belief(mean, np.zeros_like(mean))
        if self.inference.full:
            return _after_observations(outputs.reshape(-1, latent + 1))
        means, raw = outputs[:, :latent], outputs[:, latent:]
        precision = 1.0 / np.maximum(np.logaddexp(raw, np.float32(0.0)), LEAST_VARIANCE)
        variance: Array = 1.0 / precision.sum(axis=0)
        return Belief(variance * (precision * means).sum(axis=0), variance)

    def _outputs(self, context: Array) -> Array:
        """Returns the encoder's outputs for M parts of a context, [M, outputs]."""
        network = _NETWORKS.get(self.inference.encoder)
        if network is None:
            from music_tf.networks.own_encoder import own_outputs  # noqa: PLC0415  (TensorFlow)

            return own_outputs(self.weights, self.inference, context)
        return np.atleast_2d(network(list(self.weights.values()), context))


def _after_observations(observed: Array) -> Belief:
    """Returns the belief after N observations, each a direction and a value, [N, L + 1]."""
    direction, value = observed[:, :-1], observed[:, -1]
    unit = np.eye(direction.shape[-1], dtype=np.float32)
    precision = unit + direction.T @ direction
    precision += np.maximum(np.float32(LEAST_PRECISION) * np.trace(precision) - 1, 0) * unit
    spread = np.linalg.inv(np.linalg.cholesky(precision))
    mean: Array = spread.T @ (spread @ (direction.T @ value))
    return Belief(mean, np.square(spread).sum(axis=0), spread)


def encoder_shapes(
    inference: Inference, observation_dim: int, action_dim: int
) -> dict[str, tuple[int, ...]]:
    """Shapes of an encoder's weights by name, as its Keras model orders them; none for a user's."""
    kind, units = inference.encoder, inference.sizes
    if kind not in _NETWORKS:
        return {}
    widths = [inference.row_dim(observation_dim, action_dim), *units]
    state: dict[str, tuple[int, ...]] = {}
    if kind != MLP:
        gates = (3 if kind == GRU else 4) * units[-1]
        parts = ("kernel", "recurrent_kernel")
        state = {f"{ENCODER}{kind}/{part}": (units[-1], gates) for part in parts}
        state[f"{ENCODER}{kind}/bias"] = (2, gates) if kind == GRU else (gates,)
    layers = {f"hidden_{n}": (widths[n], width) for n, width in enumerate(units)}
    head = {"factor": (widths[-1], inference.outputs)}
    return weight_shapes(ENCODER, layers) | state | weight_shapes(ENCODER, head)


def context_rows(inference: Inference, inputs: NetworkInputs, steps: Steps) -> Array:
    """Returns the inputs of an encoder, [..., C]: normalised observations, action, reward."""
    reward = steps.reward[..., None]
    if inference.reward:
        reward = steps.next_extras[inference.reward]
    reward = np.float32(inference.reward_scale) * reward
    parts = [inputs.observations(steps.observation), steps.action, reward]
    if inference.next_observation:
        parts.append(inputs.observations(steps.next_observation))
    return np.concatenate(parts, axis=-1).astype(np.float32, copy=False)
