"""Packed rows of experience, and what is made of drawn ones: the same for every store."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from music_tf.config.world import DISCOUNT
from music_tf.types import ACHIEVED_REST, DESIRED_REST, Array, BoolArray, IntArray, Transition

GoalReward = Callable[[Array, Array, Mapping[str, Array]], Array]
"""Rewards [N] of achieved goals [N, G] under desired goals [N, G], beside extras [N, D]."""
GoalEnd = Callable[[Array, Array, Mapping[str, Array]], BoolArray]
"""Whether steps [N] that led there end an episode under these goals, of the same arguments."""


_RELATIVE, _ABSOLUTE = 1e-3, 1e-6
"""Up to which rewards count as the same: of their own size, and of the largest that is there."""
_ULPS = 4
"""Units in the last place by which goals are moved: a reward that changes then is at its edge."""


def reward_gaps(paid: Any, computed: Any) -> BoolArray:
    """Returns where rewards differ by more than single precision explains, of any shape.

    Each is judged by its own size. The largest one counts for no more than the rounding of a sum
    that it may be a part of: a reward of 1000 hides no error above a thousandth.
    """
    gaps: BoolArray = ~(np.abs(computed - paid) <= _slack(paid, computed))
    return gaps


def explained_by_rounding(
    reward_of: Callable[[Array], Array], places: tuple[Array, Array], paid: Array, computed: Array
) -> BoolArray:
    """Returns which rewards [N] lie among those of goals that are rounded otherwise.

    So does a reward at its edge, and one that turns a small difference of goals into a large one.

    Args:
        reward_of: Rewards [N] of achieved goals [N, G] under the goals that these steps have.
        places: Achieved and desired goals, [N, G] each.
        paid: What the steps paid.
        computed: What replay computes.
    """
    achieved, goal = places
    step = _ULPS * np.spacing(np.maximum(np.abs(achieved), np.abs(goal)))
    away = np.where(achieved < goal, -step, step)
    found = np.stack([computed, reward_of(achieved + away), reward_of(achieved - away)])
    slack = _slack(paid, computed)
    within: BoolArray = (found.min(axis=0) - slack <= paid) & (paid <= found.max(axis=0) + slack)
    return within


def _slack(paid: Any, computed: Any) -> Any:
    """Returns by how much rewards may differ, each."""
    size = np.maximum(np.abs(paid), np.abs(computed))
    return _RELATIVE * size + _ABSOLUTE * max(1.0, size.max(initial=0.0))


def packed(*numbers: str, **vectors: int) -> list[Any]:
    """Returns the layout of a packed row: vectors of these sizes, then single numbers."""
    kinds = [(name, np.float32, (size,)) for name, size in vectors.items()]
    return [*kinds, *((name, np.float32) for name in numbers)]


def extras_of(state: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the extras in rows of states, by their own names."""
    prefix = "extras/"
    names = [name for name in state.dtype.names or () if name.startswith(prefix)]
    return {name.removeprefix(prefix): state[name] for name in names}


def rests_of(state: np.ndarray) -> tuple[Array, Array]:
    """Returns what single precision cuts off achieved and desired goals; of size 0 if not kept."""
    extras, none = extras_of(state), np.zeros([*state.shape, 0], np.float32)
    return extras.get(ACHIEVED_REST, none), extras.get(DESIRED_REST, none)


class Picks(NamedTuple):
    """Which steps have been drawn: all that looking them up needs, wherever the rows lie."""

    slot: IntArray  # [...], the episode's place in its worker's store
    time: IntArray  # [...], the step t within it
    goal: IntArray  # [...], the state whose achieved goal counts; -1: the episode's own goal


class Store(Protocol):
    """Where rows are looked up: by numpy for all updates of a cycle, or on a device for one."""

    def transitions(self, picks: Picks) -> Transition:
        """Returns the transitions that have been picked, [..., W, B, ...]."""

    def trajectories(self, slots: Any, columns: Sequence[int]) -> Any:
        """Returns columns of whole trajectories, [..., W, M, T + 1, D], of their slots."""


class Drawn(NamedTuple):
    """Drawn steps, each of the shape [...] that was asked for."""

    state: np.ndarray  # rows before the action
    after: np.ndarray  # rows after it
    action: Array  # [..., A]
    reward: Array  # what the step paid
    goal: Array  # [..., G]
    own: BoolArray  # whether that is the goal under which the step was taken
    skill: Array  # [..., K]
    episode_return: Array  # of the environment's own rewards
    terminated: BoolArray  # where nothing follows
    truncated: BoolArray  # where the time was over
    lost: BoolArray  # where the object is lost for good
    goal_rest: Array  # [..., G], what single precision cuts off the goal; of size 0 if not kept


def transition(
    drawn: Drawn, discount: float, goal_reward: GoalReward | None, goal_end: GoalEnd | None = None
) -> Transition:
    """Makes drawn steps a minibatch, with the task reward under the goal of each.

    The goal that counts is the one achieved after the action: that is what the action led to.
    The one before it is the outcome of an earlier action. `discount` is gamma per environment
    step; an extra `DISCOUNT` multiplies it. A step that has got another goal also ends where
    `goal_end` says so.
    """
    after, goal, own = drawn.after, drawn.goal, drawn.own
    next_extras = extras_of(after)
    reward = np.zeros(own.shape, np.float32) if goal.shape[-1] else drawn.reward
    if goal_reward is not None:
        paid = goal_reward(*of_goals(drawn, ...))
        reward = paid.astype(np.float32, copy=False).reshape(own.shape)
    over = drawn.terminated | drawn.lost
    if goal_end is not None and not own.all():
        over[~own] |= goal_end(*of_goals(drawn, ~own))
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
    """Returns what was achieved, goals and extras of chosen steps, a row each: [N, G] or [N, D].

    Goals that are kept exactly are put together again, in double precision.
    """
    after = drawn.after[chosen].reshape(-1)
    goal, extras = drawn.goal[chosen].reshape(len(after), -1), extras_of(after)
    achieved = np.ascontiguousarray(after["achieved_goal"])
    if not drawn.goal_rest.shape[-1]:
        return achieved, goal, extras
    rests = extras[ACHIEVED_REST], drawn.goal_rest[chosen].reshape(goal.shape)
    pairs = zip((achieved, goal), rests, strict=True)
    achieved, goal = (np.add(*pair, dtype=np.float64) for pair in pairs)
    return achieved, goal, extras
