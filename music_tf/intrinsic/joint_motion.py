"""Pays wherever robot and surroundings both move: the control that MUSIC is compared with."""

import numpy as np
import tensorflow as tf

from music_tf.intrinsic.base import Feed, TermContext, Weights
from music_tf.intrinsic.paid import PaidTerm
from music_tf.recipes.controls import JointMotionConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Transition


class JointMotion(PaidTerm):
    r"""Rewards steps in which agent state x and surrounding state y both move; nothing is learned.

    .. math:: m = 1\{|\Delta x| > d \text{ and } |\Delta y| > d\}

    What a MUSIC network with random weights sees in a transition, made by hand: only what MUSIC
    does better than this has been learned. It is paid as MUSIC is, so that both can be paid alike.
    """

    def __init__(self, config: JointMotionConfig, context: TermContext) -> None:
        """Takes the threshold, and which components are the agent's and the surroundings'."""
        super().__init__(config, context)
        split = context.split()
        self._threshold = config.threshold
        self._sides = (list(split.agent), list(split.surrounding))

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        return self.gain_feed(updates, len(replay.shards))

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns 1 where both moved, else 0, [W, B]; times the gain where that is `auto`."""
        step = batch.next_observation - batch.observation
        agent, surrounding = (
            tf.norm(tf.gather(step, columns, axis=-1), axis=-1) > self._threshold
            for columns in self._sides
        )
        return self.scaled_by(tf.cast(agent & surrounding, tf.float32), feed)
