"""The environment's own reward as a term among others."""

import tensorflow as tf

from music_tf.config.terms import TaskConfig
from music_tf.intrinsic.base import Feed, Mixing, RewardTerm, TermContext
from music_tf.networks.parameters import Weights
from music_tf.types import Transition


class TaskReward(RewardTerm):
    """The environment's reward under each transition's own or relabelled goal."""

    def __init__(self, config: TaskConfig, context: TermContext) -> None:
        super().__init__(config, context)
        bounds = context.info.reward_bounds
        low, high = sorted(config.scale * end if config.scale else 0.0 for end in bounds)
        clip = (max(low, config.clip[0]), min(high, config.clip[1]))
        self.mixing = Mixing(config.scale, clip, config.shift, config.weight)

    def reward(self, weights: Weights, batch: Transition, feed: Feed) -> tf.Tensor:
        return batch.reward
