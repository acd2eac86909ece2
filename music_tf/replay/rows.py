"""Packed rows of experience, and transitions made from drawn rows, for all stores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from music_tf.config.world import DISCOUNT
from music_tf.types import EXTRAS, Array, BoolArray, IntArray, Transition

GoalReward = Callable[[Array, Array, Mapping[str, Array]], Array]
"""Maps achieved goals [N, G], desired goals [N, G] and extras [N, D] to rewards [N]."""
GoalEnd = Callable[[Array, Array, Mapping[str, Array]], BoolArray]
"""Maps the same arguments to whether the steps end an episode, [N]."""


_RELATIVE, _ABSOLUTE = 1e-3, 1e-6
"""Tolerances of equal rewards, relative to their own size and to the largest reward."""
_ULPS = 4
"""Units in the last place by which goals are moved to find a reward near its threshold."""


def reward_gaps(paid: Any, computed: Any) -> BoolArray:
    """Returns where rewards of any shape differ by more than float32 rounding explains."""
    return np.asarray(~(np.abs(computed - paid) <= _slack(paid, computed)))


def explained_by_rounding(
    reward_of: Callable[[Array], Array], places: tuple[Array, Array], paid: Array, computed: Array
) -> BoolArray:
    """Returns which rewards [N] lie within the range that rounding of goals can cause."""
    achieved, goal = places
    step = _ULPS * np.spacing(np.maximum(np.abs(achieved), np.abs(goal)))
    away = np.where(achieved < goal, -step, step)
    near = np.stack([computed, reward_of(achieved + away), reward_of(achieved - away)])
    slack = _slack(paid, computed)
    return np.asarray((near.min(axis=0) - slack <= paid) & (paid <= near.max(axis=0) + slack))


def _slack(paid: Any, computed: Any) -> Any:
    """Tolerance of each reward; relative to the largest one it is only the rounding of a sum."""
    size = np.maximum(np.abs(paid), np.abs(computed))
    return _RELATIVE * size + _ABSOLUTE * max(1.0, size.max(initial=0.0))


def packed(*numbers: str, **vectors: int) -> list[Any]:
    """Returns the fields of a packed row: vectors of these sizes, then single numbers."""
    kinds = [(name, np.float32, (size,)) for name, size in vectors.items()]
    return [*kinds, *((name, np.float32) for name in numbers)]


def extras_of(state: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the extras in rows of states by name."""
    names = [name for name in state.dtype.names or () if name.startswith(EXTRAS)]
    return {name.removeprefix(EXTRAS): state[name] for name in names}


OWN, REACHES = -1, -3
"""In `Picks.goal`: the episode's own goal; what is subtracted from for a goal of the hand."""


class Picks(NamedTuple):
    """Indices of drawn steps."""

    slot: IntArray  # [...], index of the episode in its worker's store
    time: IntArray  # [...], the step t within it
    goal: IntArray
    """[...], the state whose achieved goal is used, or `OWN`. Below `OWN`, `REACHES` minus it is
    the state whose place of the hand is used, or `OWN` for the place of the object at that time."""


class Store(Protocol):
    """Looks up rows: `ReplayBuffer` for all updates of a cycle, `DeviceReplay` for one."""

    discount: float

    def transitions(self, picks: Picks, *, paid: bool = True) -> Transition:
        """Returns the picked transitions, [..., W, B, ...]; without `paid` rewards mean nothing."""

    def trajectories(self, slots: Any, columns: Sequence[int]) -> Any:
        """Returns columns of the trajectories in `slots`, [..., W, M, T + 1, D]."""


class Drawn(NamedTuple):
    """Drawn steps of shape [...]."""

    state: np.ndarray  # rows before the action
    after: np.ndarray  # rows after it
    action: Array  # [..., A]
    reward: Array  # of the step, under its own goal; where it reaches, under `goal`
    goal: Array  # [..., G], or [..., G + H] with places of the hand
    as_taken: BoolArray  # whether that is the goal under which the step was taken
    reaches: BoolArray  # whether it is a place of the hand
    skill: Array  # [..., K]
    episode_return: Array  # of the environment's own rewards
    terminated: BoolArray
    truncated: BoolArray
    lost: BoolArray  # whether the object is lost for good


def transition(
    drawn: Drawn, discount: float, goal_reward: GoalReward | None, goal_end: GoalEnd | None = None
) -> Transition:
    """Makes a minibatch from drawn steps, with the task reward under the goal of each."""
    after, goal, reaches = drawn.after, drawn.goal, drawn.reaches
    next_extras = extras_of(after)
    reward = np.zeros(reaches.shape, np.float32) if goal.shape[-1] else drawn.reward
    if goal_reward is not None:
        of_task: Any = ~reaches if reaches.any() else ...
        if not reaches.all():
            paid = goal_reward(*of_goals(drawn, of_task))  # of goals achieved after the action
            reward[of_task] = paid.reshape(reward[of_task].shape)
        reward[reaches] = drawn.reward[reaches]
    over, relabelled = drawn.terminated | drawn.lost, ~(drawn.as_taken | reaches)
    if goal_end is not None and relabelled.any():
        over[relabelled] |= goal_end(*of_goals(drawn, relabelled))
    discounts = np.where(over, 0.0, discount).astype(np.float32)
    if DISCOUNT in next_extras:
        discounts *= next_extras[DISCOUNT][..., 0]
    return Transition(
        observation=drawn.state["observation"],
        desired_goal=goal,
        action=drawn.action,
        reward=reward,
        discount=discounts,
        truncated=drawn.truncated & ~over,
        lost=drawn.lost,
        next_observation=after["observation"],
        skill=drawn.skill,
        episode_return=drawn.episode_return,
        extras=extras_of(drawn.state),
        next_extras=next_extras,
    )


def of_goals(drawn: Drawn, chosen: Any) -> tuple[Any, Any, dict[str, Array]]:
    """Returns achieved goals, goals of the task and extras of chosen steps, [N, G] or [N, D]."""
    after = drawn.after[chosen].reshape(-1)
    achieved = np.ascontiguousarray(after["achieved_goal"])
    goal = drawn.goal[..., : achieved.shape[1]][chosen].reshape(achieved.shape)
    return achieved, goal, extras_of(after)
