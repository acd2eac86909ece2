"""Rewards for diverse skills that are paid only in episodes with a high return (SMERL)."""

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from music_tf.intrinsic.base import Feed, Mixing, RewardTerm, TermContext
from music_tf.recipes.skills import DiversityConfig
from music_tf.replay.buffer import LEARNING, ReplayBuffer
from music_tf.replay.rows import Picks
from music_tf.types import Transition


class GatedTerm(RewardTerm):
    r"""A term that pays only in episodes whose return in the task reaches a target, if any.

    .. math:: r = r_{env} + \mathbb{1}[R(\tau) \ge R^* - \epsilon] \, \eta \, r_{div}

    SMERL (arXiv:2010.14484). R is the undiscounted return so far of the episode of the step, eta
    the term's weight. The environment's reward is another term.
    """

    def __init__(self, config: DiversityConfig, context: TermContext) -> None:
        super().__init__(config, context)
        self._diversity = config
        self.every, self.times = config.every, config.times
        self._bar = -math.inf
        if config.target is not None and config.margin is not None:
            self._bar = config.target - config.margin

    def draws(self, replay: ReplayBuffer, updates: int, cycle: int) -> dict[str, Any]:
        """Picks steps to learn from, [U * times, W, B]; those of the agent if `batch` is shared."""
        if not self._diversity.train:
            return {}
        if self._diversity.batch == "own":
            return {"picks": replay.pick(updates, cycle, f"{self.name}/transitions")}
        shared = replay.pick(updates // self.times, cycle, LEARNING)
        return {"picks": Picks(*(part.repeat(self.times, axis=0) for part in shared))}

    def mixed_up_to(self, most: float) -> Mixing:
        config, (lowest, highest) = self._diversity, self._diversity.clip
        clip = lowest, max(lowest, min(highest, most * (config.scale or 1.0)))
        return Mixing(config.scale, clip, config.shift, config.weight)

    @property
    def gated(self) -> bool:
        return self._bar > -math.inf

    def gate(self, batch: Transition) -> tf.Tensor | None:
        if not self.gated:
            return None
        return tf.cast(batch.episode_return >= self._bar, tf.float32)

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        gate = self.gate(batch)
        return {} if gate is None else {f"{self.name}/gate_open": tf.reduce_mean(gate, axis=-1)}
