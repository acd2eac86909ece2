"""The base class of learners with an actor and an ensemble of critics."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from music_tf.agents.base import Batch, Learner, Losses, Noise, Phase
from music_tf.config.agents import AgentConfig
from music_tf.losses.temporal_difference import critic_loss, half_mean_critic_loss, td_target
from music_tf.networks.acting import NetworkInputs
from music_tf.networks.models import critic
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.randomness import stream
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array

_MEMBERS = "target_critics"  # name in `noise` of the critics drawn for an update's target, [n]
_OF_POLICY = "train/actor_loss", "train/entropy", "train/temperature", "train/temperature_loss"


class ActorCritic(Learner):
    """Base of DDPG and SAC: an actor, C critics on the same inputs, and their target networks."""

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
        self._seed = int(seed.integers(2**31))

    @abc.abstractmethod
    def make_actor(self, input_dim: int, action_dim: int, seed: np.random.Generator) -> keras.Model:
        """Makes the actor network, of a kind that `networks.acting` can apply."""

    def make_critic(
        self, input_dim: int, action_dim: int, seed: np.random.Generator
    ) -> keras.Model:
        return critic(self._config, input_dim + action_dim, seed)

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
        every, late = self._config.actor_every, (("actor",), ("log_temperature",))
        return [
            Phase(self.losses, names, every)
            if every == 1 or names in late
            else Phase(self._of_values, names)
            for names in groups
        ]

    def _of_values(self, *given: Any) -> Losses:
        """Returns all losses without the policy's metrics, which then are not computed."""
        losses = self.losses(*given)
        shown = {name: v for name, v in losses.metrics.items() if name not in _OF_POLICY}
        return losses._replace(metrics=shown)

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
        for network in (each for each in self._critics if each.name in weights):
            its_weights = weights[network.name]
            if frozen:  # gradients reach the action all the same
                its_weights = [tf.stop_gradient(weight) for weight in its_weights]
            values.append(network(its_weights, flat))
        return tf.reshape(tf.stack(values), [len(values), *inputs.shape[:2]])

    def feed(
        self, replay: ReplayBuffer, inputs: NetworkInputs, updates: int, cycle: int
    ) -> dict[str, Array]:
        """Draws the critics of each update's target, the same for all workers, [U, n]."""
        count = self._config.target_critics
        if not isinstance(count, int):
            return {}
        generator = stream(self._seed, "agent/target critics", 0, cycle)
        order = generator.random([updates, len(self._critics)]).argsort(axis=-1)
        return {_MEMBERS: order[:, :count].astype(np.int32)}

    def of_members(self, targets: Weights, noise: Noise) -> Weights:
        """Returns targets whose first n critics are the drawn ones, without any other critic."""
        if _MEMBERS not in noise:
            return targets
        critics = [network.name for network in self._critics]
        layers = zip(*(targets[name] for name in critics), strict=True)
        drawn = [tf.unstack(tf.gather(tf.stack(each), noise[_MEMBERS])) for each in layers]
        others = {name: each for name, each in targets.items() if name not in critics}
        return others | dict(zip(critics, map(list, zip(*drawn, strict=True)), strict=False))

    def counted(self, q: tf.Tensor, by_actor: bool = False) -> tf.Tensor:
        """Returns values [C, ...] of which the lowest counts: all of them, or their mean alone."""
        rule = self._config.target_critics
        averaged = rule == "mean" or (by_actor and rule != "lowest")
        return tf.reduce_mean(q, axis=0, keepdims=True) if averaged else q

    def climbed(self, q: tf.Tensor) -> tf.Tensor:
        """Returns what the actor maximises, [W, B], of the values [C, W, B] of its actions."""
        return tf.reduce_min(self.counted(q, by_actor=True), axis=0)

    def target(self, batch: Batch, next_q: tf.Tensor) -> tf.Tensor:
        """Returns the TD target [W, B] for the values [C, W, B] of next actions."""
        bounds = batch.bounds or self._bounds
        return td_target(batch.reward, batch.discount, self.counted(next_q), bounds)

    def critic_loss(self, q: tf.Tensor, target: tf.Tensor, truncated: tf.Tensor) -> tf.Tensor:
        if self._config.truncated != "masked":
            return self.squared_error(q, target)
        return self.squared_error(q, target, 1.0 - tf.cast(truncated, tf.float32))

    @property
    def squared_error(self) -> Callable[..., tf.Tensor]:
        """The loss function of values, by the setting `critic_loss`."""
        return critic_loss if self._config.critic_loss == "sum" else half_mean_critic_loss
