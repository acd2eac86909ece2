"""Compares rewards of steps with those that replay computes, on drawn rows during training."""

from typing import NamedTuple

import numpy as np

from music_tf.replay.rows import Drawn, GoalReward, explained_by_rounding, of_goals, reward_gaps
from music_tf.types import Array

TOLERATED_SHARE = 0.01
"""Largest share of wrong rewards that is only a warning."""
ENOUGH = 10
"""Smallest number of wrong rewards that is more than a warning."""


class RewardMismatches(NamedTuple):
    """Number of compared steps, and of those whose reward differs."""

    steps: int = 0
    wrong: int = 0

    @property
    def common(self) -> bool:
        """Whether too many rewards differ to learn from them."""
        return self.wrong >= ENOUGH and self.wrong > TOLERATED_SHARE * self.steps


class RewardWatch:
    """Compares the rewards of drawn steps that are not relabelled."""

    def __init__(self, goal_reward: GoalReward) -> None:
        self._goal_reward = goal_reward
        self._seen = RewardMismatches()
        self.example = ""
        """Text on the first reward that differed."""

    def see(self, drawn: Drawn, computed: Array) -> None:
        """Compares drawn steps [...] with the rewards that replay computes for them, [...]."""
        wrong = drawn.as_taken.copy()
        paid, replayed = drawn.reward[wrong], computed[wrong]
        gaps = reward_gaps(paid, replayed)
        wrong[drawn.as_taken] = gaps
        count = int(gaps.sum())
        if count:
            achieved, goal, extras = of_goals(drawn, wrong)
            differs = ~explained_by_rounding(
                lambda moved: self._goal_reward(moved, goal, extras),
                (achieved, goal),
                paid[gaps],
                replayed[gaps],
            )
            count = int(differs.sum())
            if count and not self.example:
                first = int(np.argmax(differs))
                self.example = (
                    f"a step paid {paid[gaps][first]:g}, and replay computes "
                    f"{replayed[gaps][first]:g} under the same goal"
                )
        self._seen = RewardMismatches(self._seen.steps + paid.size, self._seen.wrong + count)

    def take(self) -> RewardMismatches:
        """Returns the counts since the last call."""
        seen, self._seen = self._seen, RewardMismatches()
        return seen
