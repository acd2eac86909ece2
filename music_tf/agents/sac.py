"""Soft actor-critic: the variant of the MUSIC release, and the algorithm of the papers."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Losses, Noise
from music_tf.agents.soft import GaussianActorCritic
from music_tf.config.agents import SacConfig
from music_tf.config.terms import ENTROPY
from music_tf.config.values import Schedule
from music_tf.losses.policy import deterministic_policy_loss, entropy_loss, entropy_reward
from music_tf.networks.parameters import Weights
from music_tf.types import Array


class Sac(GaussianActorCritic):
    """SAC (Haarnoja et al., 2018, arXiv:1801.01290), with options for the MUSIC release.

    As released: one critic, next actions from the *target* actor, a clipped entropy reward at o_t
    that is averaged over the batch, and neither an entropy in the actor's loss nor a temperature.
    """

    _config: SacConfig

    @property
    def entropy_weight(self) -> Schedule:
        return self._config.entropy_weight

    def draws(
        self, generators: Sequence[np.random.Generator], updates: int, batch_size: int
    ) -> dict[str, Array]:
        shape = (2, updates, batch_size, self._action_dim)
        noise = [generator.standard_normal(shape, np.float32) for generator in generators]
        here, after = np.stack(noise, axis=2)
        return {"policy": here, "next_policy": after}

    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        config = self._config
        temperature = tf.stop_gradient(tf.exp(weights["log_temperature"][0]))
        drawn = self.sample(weights, batch.inputs, noise["policy"])
        proposer = targets if config.next_action == "target" else weights
        following = self.sample(proposer, batch.next_inputs, noise["next_policy"])
        critics = self.of_members(targets, noise)
        next_q = self.values(critics, batch.next_inputs, following.action)
        reward = batch.reward
        paid: dict[str, tf.Tensor] = {}
        if config.entropy_mode == "next_state":
            next_q -= temperature * following.log_density
        elif config.entropy_mode != "off":
            paid[ENTROPY] = entropy * entropy_reward(
                drawn.log_density,
                config.entropy_scale,
                config.entropy_clip,
                batch_mean=config.entropy_mode == "batch_mean",
            )
            reward += paid[ENTROPY]
        target = self.target(batch._replace(reward=reward), next_q)
        q = self.values(weights, batch.inputs, batch.action)
        value_loss = self.critic_loss(q, target, batch.truncated)
        action_value = self.values(weights, batch.inputs, drawn.action, frozen=True)
        policy_loss = deterministic_policy_loss(
            self.climbed(action_value), drawn.action, config.action_l2
        )
        if config.actor_entropy:
            policy_loss += entropy_loss(drawn.log_density, temperature)
        tuning, tuned = self.tuned(weights, drawn.log_density, noise)
        metrics = {
            "train/critic_loss": value_loss,
            "train/actor_loss": policy_loss,
            "train/mean_q": tf.reduce_mean(q, axis=[0, 2]),
            **tuned,
        }
        carried = {"log_density": drawn.log_density}
        return Losses(value_loss + policy_loss + tuning, metrics, paid, carried)
