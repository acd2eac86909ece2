"""Discrete soft actor-critic over K choices (Christodoulou, 2019, arXiv:1910.07207)."""

import math

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Losses, Noise
from music_tf.agents.soft import SoftActorCritic
from music_tf.config.agents import DiscreteSacConfig
from music_tf.losses.discrete import choice_entropy, choice_loss, soft_value
from music_tf.networks.models import critic, plain
from music_tf.networks.parameters import Weights


class DiscreteSac(SoftActorCritic):
    """A categorical actor, and critics that return the values of all choices.

    The largest component of an action [K] is the choice, so that code for continuous actions fits.
    Expectations over choices are exact. The main actor proposes next choices.
    """

    _config: DiscreteSacConfig

    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        config = self._config
        return plain(input_dim, action_dim, "choice", config.actor_layers, seed, config.initializer)

    def make_critic(
        self, input_dim: int, action_dim: int, seed: np.random.Generator
    ) -> keras.Model:
        return critic(self._config, input_dim, seed, action_dim, "choice")

    @property
    def wanted_entropy(self) -> float:
        return self._config.target_entropy * math.log(self._action_dim)

    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        temperature = tf.stop_gradient(tf.exp(weights["log_temperature"][0]))
        next_q = self.counted(self._all_values(self.of_members(targets, noise), batch.next_inputs))
        next_value = soft_value(next_q, self._log_policy(weights, batch.next_inputs), temperature)
        target = self.target(batch, next_value[None])
        q = self._all_values(weights, batch.inputs)
        chosen = tf.one_hot(tf.argmax(batch.action, axis=-1), self._action_dim)
        chosen_q = tf.reduce_sum(q * chosen, axis=-1)
        value_loss = self.critic_loss(chosen_q, target, batch.truncated)
        log_policy = self._log_policy(weights, batch.inputs)
        policy_loss = choice_loss(self.counted(q, by_actor=True), log_policy, temperature)
        expected = -choice_entropy(log_policy)
        tuning, tuned = self.tuned(weights, expected, noise)
        metrics = {
            "train/critic_loss": value_loss,
            "train/actor_loss": policy_loss,
            "train/mean_q": tf.reduce_mean(chosen_q, axis=[0, 2]),
            **tuned,
        }
        carried = {"log_density": expected}
        return Losses(value_loss + policy_loss + tuning, metrics, carried=carried)

    def _log_policy(self, weights: Weights, inputs: tf.Tensor) -> tf.Tensor:
        """Returns log pi of all choices, [W, B, K]."""
        return tf.nn.log_softmax(self._actor.rows(weights[self._actor.name], inputs))

    def _all_values(self, weights: Weights, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the values of all choices, [C, W, B, K]."""
        critics = (each for each in self._critics if each.name in weights)
        return tf.stack([each.rows(weights[each.name], inputs) for each in critics])
