"""Deep deterministic policy gradient (Lillicrap et al., 2016, arXiv:1509.02971)."""

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.actor_critic import ActorCritic
from music_tf.agents.base import Batch, Losses, Noise
from music_tf.losses.policy import deterministic_policy_loss
from music_tf.networks.models import deterministic_actor
from music_tf.networks.parameters import Weights


class Ddpg(ActorCritic):
    """DDPG as in OpenAI Baselines' HER: the target actor proposes next actions.

    Deviations from the paper: exploration is Gaussian and uniform, large actions are penalised,
    targets move once per cycle by default, and several critics are allowed.
    """

    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        config = self._config
        return deterministic_actor(
            input_dim, action_dim, config.actor_layers, seed, config.initializer
        )

    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        next_action = self._actor.rows(targets["actor"], batch.next_inputs)
        next_q = self.values(self.of_members(targets, noise), batch.next_inputs, next_action)
        target = self.target(batch, next_q)
        q = self.values(weights, batch.inputs, batch.action)
        value_loss = self.critic_loss(q, target, batch.truncated)
        action = self._actor.rows(weights["actor"], batch.inputs)
        action_value = self.values(weights, batch.inputs, action, frozen=True)
        policy_loss = deterministic_policy_loss(
            self.climbed(action_value), action, self._config.action_l2
        )
        metrics = {
            "train/critic_loss": value_loss,
            "train/actor_loss": policy_loss,
            "train/mean_q": tf.reduce_mean(q, axis=[0, 2]),
        }
        return Losses(value_loss + policy_loss, metrics)
