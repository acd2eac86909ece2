"""Pays wherever robot and surroundings both move: the control that MUSIC is compared with."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from music_tf.config.schema import JointMotionConfig
from music_tf.intrinsic.base import Feed, Mixing, Weights
from music_tf.networks.parameters import Network
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Episodes, Metrics, SplitSpec, Transition


class JointMotion:
    r"""Rewards steps in which agent state x and surrounding state y both move; nothing is learned.

    .. math:: r = 1\{|\Delta x| > d \text{ and } |\Delta y| > d\}

    What a MUSIC network with random weights sees in a transition, made by hand: only what MUSIC
    does better than this has been learned.
    """

    name = "joint_motion"

    def __init__(self, config: JointMotionConfig, split: SplitSpec) -> None:
        """Takes the settings.

        Args:
            config: Threshold and mixing.
            split: Which components are the agent's and which the surroundings'.
        """
        self._threshold = config.threshold
        self._sides = (list(split.agent), list(split.surrounding))
        self.mixing = Mixing(1.0, (0.0, 1.0), config.shift, config.weight)
        self.networks: Sequence[Network] = ()

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        """Needs nothing beside the transitions."""
        return {}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns 1 where both moved, else 0, [W, B]."""
        step = batch.next_observation - batch.observation
        agent, surrounding = (
            tf.norm(tf.gather(step, columns, axis=-1), axis=-1) > self._threshold
            for columns in self._sides
        )
        return tf.cast(agent & surrounding, tf.float32)

    def loss(self, weights: Weights, feed: Feed) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Learns nothing."""
        return tf.zeros([]), {}

    def steady_feed(self, workers: int) -> Feed:
        """Needs nothing beside the transitions."""
        return {}

    def heldout(self, weights: Weights, episodes: Episodes) -> Metrics:
        """Has nothing to show: it learns nothing."""
        return {}
