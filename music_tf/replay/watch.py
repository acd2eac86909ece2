"""Goes on comparing what steps paid with what replay computes, on rows that are drawn anyway."""

from typing import NamedTuple

import numpy as np

from music_tf.replay.rows import Drawn, GoalReward, explained_by_rounding, of_goals, reward_gaps
from music_tf.types import Array

RARE = 0.01
"""Share of steps up to which rewards that differ are a warning."""
ENOUGH = 10
"""Steps that have to differ before more than a warning comes of it."""


class Compared(NamedTuple):
    """How many steps were compared, and how many of them pay something else."""

    steps: int = 0
    wrong: int = 0

    @property
    def common(self) -> bool:
        """Whether so many differ that nothing right can be learned."""
        return self.wrong >= ENOUGH and self.wrong > RARE * self.steps


class RewardWatch:
    """Compares rewards of drawn steps that have kept their own goal; draws and changes nothing."""

    def __init__(self, goal_reward: GoalReward) -> None:
        """Takes the reward that replay computes."""
        self._goal_reward = goal_reward
        self._seen = Compared()
        self.example = ""
        """What the first that differed paid, and what replay computes."""

    def see(self, drawn: Drawn, computed: Array) -> None:
        """Counts drawn steps [...] and what replay computes for them, [...]."""
        wrong, paid, found = drawn.own.copy(), drawn.reward[drawn.own], computed[drawn.own]
        gaps = reward_gaps(paid, found)
        wrong[drawn.own] = gaps
        count = int(gaps.sum())
        if count:
            achieved, goal, extras = of_goals(drawn, wrong)
            differs = ~explained_by_rounding(
                lambda moved: self._goal_reward(moved, goal, extras),
                (achieved, goal),
                paid[gaps],
                found[gaps],
            )
            count = int(differs.sum())
            if count and not self.example:
                first = int(np.argmax(differs))
                self.example = (
                    f"a step paid {paid[gaps][first]:g}, and replay computes "
                    f"{found[gaps][first]:g} under the same goal"
                )
        self._seen = Compared(self._seen.steps + paid.size, self._seen.wrong + count)

    def take(self) -> Compared:
        """Returns what has been counted since the last call."""
        seen, self._seen = self._seen, Compared()
        return seen
