"""A hand-made reward for joint motion of robot and surroundings: a baseline for MUSIC."""

import numpy as np
import tensorflow as tf

from music_tf.intrinsic.base import Feed, TermContext
from music_tf.intrinsic.scaled import ScaledTerm
from music_tf.networks.parameters import Weights
from music_tf.recipes.controls import JointMotionConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Transition


class JointMotion(ScaledTerm):
    """Pays 1 where agent state and surrounding state both move far enough; nothing is learned."""

    def __init__(self, config: JointMotionConfig, context: TermContext) -> None:
        super().__init__(config, context)
        split = context.split()
        self._threshold = config.threshold
        self._sides = (list(split.agent), list(split.surrounding))

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        return self.gain_feed(updates, len(replay.shards))

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        step = batch.next_observation - batch.observation
        agent, surrounding = (
            tf.norm(tf.gather(step, columns, axis=-1), axis=-1) > self._threshold
            for columns in self._sides
        )
        return self.scaled_by(tf.cast(agent & surrounding, tf.float32), feed)
