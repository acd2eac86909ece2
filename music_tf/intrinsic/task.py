"""The environment's own reward as a term among others."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from music_tf.config.schema import TaskConfig
from music_tf.intrinsic.base import Feed, Mixing, Weights
from music_tf.networks.parameters import Network
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Episodes, Metrics, Transition


class TaskReward:
    """The task reward under the goal that replay gave each transition."""

    name = "task"

    def __init__(self, config: TaskConfig, bounds: tuple[float, float]) -> None:
        """Takes the settings.

        Args:
            config: Of the term.
            bounds: Of the environment's reward, which tighten the clip of the settings.
        """
        low, high = sorted(config.scale * end if config.scale else 0.0 for end in bounds)
        clip = (max(low, config.clip[0]), min(high, config.clip[1]))
        self.mixing = Mixing(config.scale, clip, config.shift, config.weight)
        self.networks: Sequence[Network] = ()

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Needs nothing beside the transitions."""
        return {}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns the replayed reward, [W, B]."""
        return batch.reward

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Learns nothing."""
        return tf.zeros([]), {}

    def steady_feed(self, workers: int) -> Feed:
        """Needs nothing beside the transitions."""
        return {}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Has nothing to show: it learns nothing."""
        return {}
