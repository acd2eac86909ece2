"""What all our learners share: an actor, and an ensemble of action values."""

import abc
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.base import Learner, Phase, Weights, stopped
from music_tf.config.agents import AgentConfig
from music_tf.losses.temporal_difference import critic_loss, half_mean_critic_loss
from music_tf.networks.models import critic
from music_tf.networks.parameters import Network, Scalar


class ActorCritic(Learner):
    """An actor and independent critics that are evaluated together, with weights handed in."""

    def __init__(
        self,
        config: AgentConfig,
        input_dim: int,
        action_dim: int,
        return_bounds: tuple[float, float],
        seed: np.random.Generator,
    ) -> None:
        """Builds the networks, with initial weights from `seed`.

        Actor and critics are conditioned on `input_dim` numbers, and `return_bounds` bound the
        TD target.
        """
        self._config = config
        self._bounds = return_bounds
        actor = self.make_actor(input_dim, action_dim, seed)
        self._actor = Network("actor", actor, config.actor_learning_rate)
        self._critics = [
            Network(
                f"critic_{index}",
                self.make_critic(input_dim, action_dim, seed),
                config.critic_learning_rate,
            )
            for index in range(config.critics)
        ]

    @abc.abstractmethod
    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        """Makes the network of which `networks.acting` knows how it acts."""

    def make_critic(
        self, input_dim: int, action_dim: int, seed: np.random.Generator
    ) -> keras.Model:
        """Makes a network that values an action."""
        config = self._config
        return critic(input_dim, action_dim, config.critic_layers, seed, config.initializer)

    @property
    def phases(self) -> Sequence[Phase]:
        """One step of everything, or one of each group of `sequence` after the other.

        Losses of one network do not reach another's weights. So each phase has the losses of all,
        at weights of which some have moved, and steps along its own part of the gradient.
        """
        if self._config.update_order == "simultaneous":
            return super().phases
        return [Phase(self.losses, names) for names in self.sequence]

    @property
    def sequence(self) -> Sequence[tuple[str, ...]]:
        """Names of the networks that step together, in the order of a sequential update."""
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
        """Returns action values [C, W, B] of inputs [W, B, I] and actions [W, B, A].

        `frozen` lets gradients through to the action but not to the weights.
        """
        rows = tf.concat([inputs, action], axis=-1)
        flat = tf.reshape(rows, [-1, rows.shape[-1]])
        values = []
        for network in self._critics:
            own = weights[network.name]
            values.append(network(stopped(own) if frozen else own, flat))
        return tf.reshape(tf.stack(values), [len(values), *inputs.shape[:2]])

    def critic_loss(self, q: tf.Tensor, target: tf.Tensor, truncated: tf.Tensor) -> tf.Tensor:
        """Returns the critics' loss [W] in the form that the settings name."""
        if self._config.truncated != "masked":
            return self.squared_error(q, target)
        return self.squared_error(q, target, 1.0 - tf.cast(truncated, tf.float32))

    @property
    def squared_error(self) -> Callable[..., tf.Tensor]:
        """The loss of values, `critic_loss` or half of it, that the settings name."""
        return critic_loss if self._config.critic_loss == "sum" else half_mean_critic_loss
