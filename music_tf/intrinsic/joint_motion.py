"""Pays wherever robot and surroundings both move: the control that MUSIC is compared with."""

import tensorflow as tf

from music_tf.config.settings import JointMotionConfig
from music_tf.intrinsic.base import Feed, RewardTerm, TermContext, Weights
from music_tf.types import Transition


class JointMotion(RewardTerm):
    r"""Rewards steps in which agent state x and surrounding state y both move; nothing is learned.

    .. math:: r = 1\{|\Delta x| > d \text{ and } |\Delta y| > d\}

    What a MUSIC network with random weights sees in a transition, made by hand: only what MUSIC
    does better than this has been learned.
    """

    def __init__(self, config: JointMotionConfig, context: TermContext) -> None:
        """Takes the threshold, and which components are the agent's and the surroundings'."""
        super().__init__(config, context)
        split = context.split()
        self._threshold = config.threshold
        self._sides = (list(split.agent), list(split.surrounding))

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        """Returns 1 where both moved, else 0, [W, B]."""
        step = batch.next_observation - batch.observation
        agent, surrounding = (
            tf.norm(tf.gather(step, columns, axis=-1), axis=-1) > self._threshold
            for columns in self._sides
        )
        return tf.cast(agent & surrounding, tf.float32)
