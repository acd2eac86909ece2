"""What a learner is, and what it is given."""

import abc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from music_tf.config.values import Schedule
from music_tf.networks.acting import NetworkInputs
from music_tf.networks.parameters import Network, Scalar
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Array

Weights: TypeAlias = Mapping[str, list[tf.Tensor]]
"""Weights of each network by its name."""


class Batch(NamedTuple):
    """A minibatch as networks see it: inputs normalised, reward mixed, leading axes [W, B]."""

    inputs: tf.Tensor  # [W, B, I], observation, condition and goal
    next_inputs: tf.Tensor  # [W, B, I]
    action: tf.Tensor  # [W, B, A]
    reward: tf.Tensor  # [W, B]
    discount: tf.Tensor  # [W, B]
    truncated: tf.Tensor  # [W, B], true where the time was over


class Losses(NamedTuple):
    """What an update minimises, and what is logged of it."""

    total: tf.Tensor  # [W], the sum of the losses of all networks of the learner
    metrics: Mapping[str, tf.Tensor]  # each [W]
    paid: Mapping[str, tf.Tensor] = MappingProxyType({})
    """Rewards that the learner adds to those of the batch, by name, each [W, B]."""
    carried: Mapping[str, tf.Tensor] = MappingProxyType({})
    """What later phases of the same update find among their noise, by name, without gradient."""


class Phase(NamedTuple):
    """A step within an update: the losses that it lowers, what it moves, and how often.

    A phase has its own gradient, sees the weights that the phases before it have moved, and takes
    its own Adam step. One that is not due leaves weights, moments and step count alone.
    """

    losses: Callable[..., Losses]
    """As `Learner.losses`."""
    networks: tuple[str, ...]
    """Names of networks that lie side by side."""
    every: int = 1
    """Due at every n-th update."""
    times: int = 1
    """Steps that it takes when it is due."""


class Learner(abc.ABC):
    """Networks and the losses that train them; holds no weights itself.

    Losses of one network must not reach another's weights: what is summed into `total` is
    differentiated once with respect to all of them.
    """

    entropy_weight: Schedule = ((0.0, 0.0),)
    """Weight of the entropy in the TD target, by epoch."""

    @property
    def phases(self) -> Sequence[Phase]:
        """What an update consists of: by default one step of everything."""
        return [Phase(self.losses, tuple(network.name for network in self.networks))]

    @property
    @abc.abstractmethod
    def networks(self) -> Sequence[Network | Scalar]:
        """Everything trained: the actor first, and those with targets side by side."""

    @property
    def encoder(self) -> Network | None:
        """What infers the condition of the policy, if anything does."""
        return None

    @property
    @abc.abstractmethod
    def target_networks(self) -> Sequence[Network]:
        """Networks with a target network."""

    @abc.abstractmethod
    def draws(
        self, generators: Sequence[np.random.Generator], updates: int, batch_size: int
    ) -> dict[str, Array]:
        """Draws the noise for all updates of a cycle, [U, W, B, ...], a generator a worker."""

    def feed(
        self, replay: ReplayBuffer, inputs: NetworkInputs, updates: int, cycle: int
    ) -> dict[str, Array]:
        """Returns what its losses read beside minibatches, for all updates of a cycle.

        Arrays [U, W, ...] by name, which `losses` finds among its noise. `inputs` says how
        observations are normalised at present.
        """
        del replay, inputs, updates, cycle
        return {}

    @abc.abstractmethod
    def losses(
        self,
        weights: Weights,
        targets: Weights,
        batch: Batch,
        noise: Mapping[str, tf.Tensor],
        entropy_weight: tf.Tensor,
    ) -> Losses:
        """Returns the losses on one minibatch, all at the weights given."""


def stopped(weights: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the same weights, as constants for whatever is differentiated."""
    return [tf.stop_gradient(weight) for weight in weights]
