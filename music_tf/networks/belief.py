"""What a robot believes of its task, inferred in plain numpy from what it has lived through.

The same as `losses.posterior` and the encoder in a learner, without TensorFlow: for ranks that only
act, and for saved policies.
"""

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from music_tf.config.settings import Inference
from music_tf.networks.acting import ENCODER, NetworkInputs, mlp
from music_tf.types import Array

_LEAST_VARIANCE = 1e-7


class Steps(NamedTuple):
    """Steps in one task, as far as an encoder may read them."""

    observation: Array  # [..., O]
    action: Array  # [..., A]
    reward: Array  # [...], the environment's own
    next_observation: Array  # [..., O]
    next_extras: Mapping[str, Array] = MappingProxyType({})
    """Of the state after each step by name, [..., D]."""


class Belief(NamedTuple):
    """A diagonal Gaussian over latents; one without variance draws its mean."""

    mean: Array  # [L]
    variance: Array  # [L]

    def draw(self, noise: Array) -> Array:
        """Returns latents [..., L] for standard normal noise [..., L]."""
        return (self.mean + np.sqrt(self.variance) * noise).astype(np.float32)


class Encoder:
    """Infers beliefs from contexts: rows of observation, action, reward, perhaps what followed."""

    def __init__(self, weights: Mapping[str, Array], inference: Inference) -> None:
        """Takes the weights by name, in the order of `encoder_shapes`."""
        self._weights = list(weights.values())
        self._latent, self._deterministic = inference.latent, inference.deterministic

    @property
    def prior(self) -> Belief:
        """What is believed without a context: N(0, 1), or 0 where latents are deterministic."""
        zeros = np.zeros(self._latent, np.float32)
        return Belief(zeros, zeros if self._deterministic else zeros + 1.0)

    def __call__(self, context: Array) -> Belief:
        """Returns the posterior of a context [N, C], whose rows all count alike; N >= 1."""
        outputs = mlp(self._weights, context)
        if self._deterministic:
            mean: Array = outputs.mean(axis=0)
            return Belief(mean, np.zeros_like(mean))
        means, raw = outputs[:, : self._latent], outputs[:, self._latent :]
        precision = 1.0 / np.maximum(np.logaddexp(raw, np.float32(0.0)), _LEAST_VARIANCE)
        variance: Array = 1.0 / precision.sum(axis=0)
        return Belief(variance * (precision * means).sum(axis=0), variance)


def encoder_shapes(
    inference: Inference, observation_dim: int, action_dim: int
) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of an encoder's weights by name, in the order of its Keras model."""
    sizes = [inference.row_dim(observation_dim, action_dim), *inference.sizes, inference.outputs]
    names = [*(f"hidden_{index}" for index in range(len(inference.sizes))), "factor"]
    return {
        f"{ENCODER}{name}/{part}": shape
        for name, kernel in zip(names, itertools.pairwise(sizes), strict=True)
        for part, shape in (("kernel", kernel), ("bias", kernel[1:]))
    }


def context_rows(inference: Inference, inputs: NetworkInputs, steps: Steps) -> Array:
    """Returns what an encoder reads of steps, [..., C]: normalised observations, action, reward."""
    reward = steps.reward[..., None]
    if inference.reward:
        reward = steps.next_extras[inference.reward]
    parts = [inputs.observations(steps.observation), steps.action, reward]
    if inference.next_observation:
        parts.append(inputs.observations(steps.next_observation))
    return np.concatenate(parts, axis=-1).astype(np.float32, copy=False)
