"""The interface of learners, and the minibatches that they get."""

import abc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from music_tf.config.values import Schedule
from music_tf.networks.acting import NetworkInputs
from music_tf.networks.parameters import Network, Scalar, Weights
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array

Noise: TypeAlias = Mapping[str, tf.Tensor]
"""What `draws`, `feed` and earlier phases have for an update, by name."""


class Batch(NamedTuple):
    """A minibatch with normalised inputs and mixed rewards."""

    inputs: tf.Tensor  # [W, B, I], observation, condition and goal
    next_inputs: tf.Tensor  # [W, B, I]
    action: tf.Tensor  # [W, B, A]
    reward: tf.Tensor  # [W, B]
    discount: tf.Tensor  # [W, B]
    truncated: tf.Tensor  # [W, B], true where a time limit ended the episode
    bounds: tuple[tf.Tensor, tf.Tensor] | None = None  # of the TD target; None: `return_bounds`
    critic_inputs: tf.Tensor | None = None  # [W, B, I], with the critics' gradient; None: inputs


class Losses(NamedTuple):
    """The losses and metrics of an update."""

    total: tf.Tensor  # [W], the sum of the losses of all networks of the learner
    metrics: Mapping[str, tf.Tensor]  # each [W]
    paid: Mapping[str, tf.Tensor] = MappingProxyType({})
    """Rewards that the learner adds to those of the batch, by name, each [W, B]."""
    carried: Mapping[str, tf.Tensor] = MappingProxyType({})
    """Tensors that later phases of the same update get in their noise, without gradient."""


class Phase(NamedTuple):
    """A step within an update: its losses, its networks, and how often it is taken.

    A phase computes its gradient at the weights that earlier phases have updated, and takes its own
    Adam step. A phase that is not due changes neither weights nor moments nor its step count.
    """

    losses: Callable[..., Losses]
    """As `Learner.losses`."""
    networks: tuple[str, ...]
    """Names of networks that are adjacent in `Learner.networks`."""
    every: int = 1
    """Due at every n-th update."""
    times: int = 1
    """Number of steps when it is due."""


class Learner(abc.ABC):
    """Networks and the losses that train them; holds no weights itself.

    A loss must not have a gradient in the weights of another network, because the sum `total` is
    differentiated with respect to all weights at once.
    """

    @property
    def entropy_weight(self) -> Schedule:
        """Weight of the entropy in the TD target, by epoch."""
        return ((0.0, 0.0),)

    @property
    def phases(self) -> Sequence[Phase]:
        """The phases of an update; by default one for all networks."""
        return [Phase(self.losses, tuple(network.name for network in self.networks))]

    @property
    @abc.abstractmethod
    def networks(self) -> Sequence[Network | Scalar]:
        """All trained networks: the actor first, those with a target network adjacent."""

    @property
    def encoder(self) -> Network | None:
        """The network that infers the latent of a task, if there is one."""
        return None

    @property
    @abc.abstractmethod
    def target_networks(self) -> Sequence[Network]:
        """Networks with a target network."""

    def draws(
        self, generators: Sequence[np.random.Generator], updates: int, batch_size: int
    ) -> dict[str, Array]:
        """Draws noise [U, W, B, ...] for all U updates of a cycle.

        `losses` gets the part of its update, [W, B, ...], in `noise`. For example for actions:

            shape = (updates, batch_size, self._action_dim)
            drawn = [each.standard_normal(shape, np.float32) for each in generators]
            return {"policy": np.stack(drawn, axis=1)}  # [U, W, B, A]

        Args:
            generators: One for each of the W workers of this rank, so that the draws of a worker
                are the same on any number of ranks.
            updates: Number U of updates.
            batch_size: Transitions B of each worker in an update.
        """
        return {}

    def feed(
        self, replay: ReplayBuffer, inputs: NetworkInputs, updates: int, cycle: int
    ) -> dict[str, Array]:
        """Samples what losses need beside minibatches and draws, for all updates of a cycle.

        Args:
            replay: Replay of this rank.
            inputs: Current normalisation of observations.
            updates: Number U of updates.
            cycle: Determines the random streams.

        Returns:
            Arrays [U, W, ...] by name, for `noise` of `losses`.
        """
        return {}

    @abc.abstractmethod
    def losses(
        self, weights: Weights, targets: Weights, batch: Batch, noise: Noise, entropy: tf.Tensor
    ) -> Losses:
        """Returns the losses on one minibatch, at the given weights and weight of the entropy."""
