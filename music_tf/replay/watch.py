"""Goes on comparing what steps paid with what replay computes, on rows that are drawn anyway."""

from typing import NamedTuple

import numpy as np

from music_tf.replay.rows import Drawn, GoalReward, of_goals, reward_gaps
from music_tf.types import Array

RARE = 0.01
"""Share of steps up to which rewards that differ are a warning."""
ENOUGH = 10
"""Steps that have to differ before more than a warning comes of it."""
_ULPS = 4
"""Units in the last place by which goals are moved: a reward that changes then is at its edge."""


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
            differs = ~self._at_its_edge(drawn, wrong, paid[gaps])
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

    def _at_its_edge(self, drawn: Drawn, chosen: np.ndarray, paid: Array) -> np.ndarray:
        """Whether chosen steps [N] get what they paid once their goals are rounded otherwise."""
        achieved, goal, extras = of_goals(drawn, chosen)
        step = _ULPS * np.spacing(np.maximum(np.abs(achieved), np.abs(goal)))
        away = np.where(achieved < goal, -step, step)
        edge = np.zeros(len(paid), np.bool_)
        for moved in (achieved + away, achieved - away):
            edge |= ~reward_gaps(paid, self._goal_reward(moved, goal, extras))
        return edge
