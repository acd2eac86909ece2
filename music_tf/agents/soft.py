"""Base classes of soft actor-critic: the temperature, and the squashed Gaussian policy."""

import abc
import math
from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.actor_critic import ActorCritic
from music_tf.config.agents import GaussianConfig, SoftConfig
from music_tf.distributions import SquashedSample, sample_tanh_gaussian
from music_tf.losses.policy import temperature_loss
from music_tf.networks.models import gaussian_actor
from music_tf.networks.parameters import Network, Scalar, Weights


class SoftActorCritic(ActorCritic):
    """Base of `Sac`, `SacValue`, `Pearl`, `DiscreteSac`: a temperature alpha (arXiv:1812.05905)."""

    _config: SoftConfig

    @property
    def _log_temperature(self) -> Scalar:
        config = self._config
        rate = config.temperature_learning_rate if config.learn_temperature else 0.0
        return Scalar("log_temperature", math.log(config.temperature), rate)

    @property
    def networks(self) -> Sequence[Network | Scalar]:
        return [*super().networks, self._log_temperature]

    @property
    def sequence(self) -> Sequence[tuple[str, ...]]:
        learned = [("log_temperature",)] if self._config.learn_temperature else []
        return [*super().sequence, *learned]

    @property
    @abc.abstractmethod
    def wanted_entropy(self) -> float:
        """Target entropy of the policy for a learned temperature, in nats."""

    def tuned(
        self, weights: Weights, log_density: tf.Tensor, noise: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Returns the temperature's loss, and the metrics of temperature and entropy, [W] each.

        `log_density` is log pi of a drawn action or its expectation, [W, B]; later phases get in
        `noise` that of the first one, before the actor's step.
        """
        log_density = noise.get("log_density", log_density)
        log_temperature = weights["log_temperature"][0]
        entropy = -tf.reduce_mean(log_density, axis=-1)
        metrics = {
            "train/entropy": entropy,
            "train/temperature": tf.exp(log_temperature) * tf.ones_like(entropy),
        }
        if not self._config.learn_temperature:
            return tf.zeros_like(entropy), metrics
        loss = temperature_loss(log_temperature, log_density, self.wanted_entropy)
        return loss, metrics | {"train/temperature_loss": loss}


class GaussianActorCritic(SoftActorCritic):
    """A soft actor-critic with a squashed Gaussian policy."""

    _config: GaussianConfig

    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        config = self._config
        return gaussian_actor(
            input_dim, action_dim, config.actor_layers, seed, config.actor, config.initializer
        )

    @property
    def wanted_entropy(self) -> float:
        return self._config.target_entropy_per_action * self._action_dim

    def sample(self, weights: Weights, inputs: tf.Tensor, noise: tf.Tensor) -> SquashedSample:
        """Draws actions for inputs [W, B, I], with standard normal noise [W, B, A]."""
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        mean, log_deviation = self._actor(weights["actor"], rows)
        shape = noise.shape
        return sample_tanh_gaussian(
            tf.reshape(mean, shape),
            tf.reshape(log_deviation, shape),
            noise,
            epsilon=self._config.squash_correction == "epsilon",
        )
