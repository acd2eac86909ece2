"""The base class of learners with an actor and an ensemble of critics."""

import abc
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.base import Learner, Phase, stopped
from music_tf.config.agents import AgentConfig
from music_tf.losses.temporal_difference import critic_loss, half_mean_critic_loss
from music_tf.networks.models import critic
from music_tf.networks.parameters import Network, Scalar, Weights


class ActorCritic(Learner):
    """An actor, and an ensemble of critics on the same inputs."""

    def __init__(
        self,
        config: AgentConfig,
        input_dim: int,  # I: observation, condition and goal
        action_dim: int,  # A
        return_bounds: tuple[float, float],  # of the TD target
        seed: np.random.Generator,  # draws initial weights
    ) -> None:
        self._config = config
        self._bounds = return_bounds
        self._action_dim = action_dim
        actor = self.make_actor(input_dim, action_dim, seed)
        self._actor = Network("actor", actor, config.actor_learning_rate)
        critics = [self.make_critic(input_dim, action_dim, seed) for _ in range(config.critics)]
        self._critics = [
            Network(f"critic_{index}", model, config.critic_learning_rate)
            for index, model in enumerate(critics)
        ]
        self.make_others(input_dim, action_dim, seed)

    @abc.abstractmethod
    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        """Makes the actor network, of a kind that `networks.acting` can apply."""

    def make_critic(
        self, input_dim: int, action_dim: int, seed: np.random.Generator
    ) -> keras.Model:
        config = self._config
        return critic(input_dim, action_dim, config.critic_layers, seed, config.initializer)

    def make_others(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> None:
        """Makes further networks of a subclass, after actor and critics."""

    @property
    def phases(self) -> Sequence[Phase]:
        """One phase for all networks, or one for each group of `sequence`.

        No loss has a gradient in the weights of another network, so that every phase computes all
        losses and applies its part of the gradient.
        """
        if self._config.update_order == "simultaneous":
            return super().phases
        groups = list(self.sequence)
        if self._config.update_order == "actor_first":
            groups.sort(key=lambda names: names != ("actor",))
        return [Phase(self.losses, names) for names in groups]

    @property
    def sequence(self) -> Sequence[tuple[str, ...]]:
        """Names of the networks in each phase of a sequential update, in order, the actor alone."""
        return [tuple(network.name for network in self._critics), ("actor",)]

    @property
    def networks(self) -> Sequence[Network | Scalar]:
        return self.target_networks

    @property
    def target_networks(self) -> Sequence[Network]:
        return [self._actor, *self._critics]

    def values(
        self, weights: Weights, inputs: tf.Tensor, action: tf.Tensor, frozen: bool = False
    ) -> tf.Tensor:
        """Returns action values [C, W, B] of inputs [W, B, I] and actions [W, B, A]."""
        rows = tf.concat([inputs, action], axis=-1)
        flat = tf.reshape(rows, [-1, rows.shape[-1]])
        values = []
        for network in self._critics:
            its_weights = weights[network.name]
            # gradients reach the action all the same
            values.append(network(stopped(its_weights) if frozen else its_weights, flat))
        return tf.reshape(tf.stack(values), [len(values), *inputs.shape[:2]])

    def critic_loss(self, q: tf.Tensor, target: tf.Tensor, truncated: tf.Tensor) -> tf.Tensor:
        if self._config.truncated != "masked":
            return self.squared_error(q, target)
        return self.squared_error(q, target, 1.0 - tf.cast(truncated, tf.float32))

    @property
    def squared_error(self) -> Callable[..., tf.Tensor]:
        """The loss function of values, by the setting `critic_loss`."""
        return critic_loss if self._config.critic_loss == "sum" else half_mean_critic_loss
