"""A random reward: the baseline for behaviour that no reward explains."""

import numpy as np
import tensorflow as tf

from music_tf.intrinsic.base import Feed, TermContext
from music_tf.intrinsic.scaled import ScaledTerm
from music_tf.networks.parameters import Weights
from music_tf.randomness import stream
from music_tf.recipes.controls import RandomRewardConfig
from music_tf.replay.buffer import ReplayBuffer
from music_tf.types import Transition


class RandomReward(ScaledTerm):
    """Rewards a replayed step with a number that is drawn anew each time, m ~ U(0, 1)."""

    def __init__(self, config: RandomRewardConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._seed = context.seed

    def feed(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, np.ndarray]:
        size = (updates, replay.batch_size)
        drawn = [
            stream(self._seed, "random reward", worker, cycle).random(size, np.float32)
            for worker in replay.shards
        ]
        return {"drawn": np.stack(drawn, axis=1), **self.gain_feed(updates, len(drawn))}

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        return self.scaled_by(feed["drawn"], feed)
