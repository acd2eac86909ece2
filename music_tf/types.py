"""Containers passed between stages, and the shape letters used in every comment.

W workers of this rank, U updates, B batch, E environments or episodes, T steps of an episode,
M trajectories, N states of a trajectory, C critics, O observation, G goal, A action, K skills
or numbers in a continuous condition.

The containers hold numpy arrays between environments and replay, and tensors inside a learner.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Metrics: TypeAlias = dict[str, float]
"""Values by `group/quantity`, the names that TensorBoard, CSV and summary share."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """Which components of an observation are the robot itself and which its surroundings."""

    agent: tuple[int, ...]
    surrounding: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """Sizes and layout of an environment, as a learner sees it."""

    env_id: str
    observation_dim: int
    goal_dim: int
    action_dim: int
    max_episode_steps: int
    split: SplitSpec | None = None
    """None where the environment has no surroundings to control."""
    extras: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Named columns beside the observation, with their sizes: entries of an environment's `info`,
    the achieved goal, or what functions of the user's read.

    One named `music_tf/discount`, of size 1, multiplies the discount of the step that brought it.
    """


ACHIEVED_REST, DESIRED_REST = "music_tf/achieved_goal_rest", "music_tf/desired_goal_rest"
"""Extras that hold what single precision cuts off goals, [G], where they are kept exactly."""


class Episodes(NamedTuple):
    """Episodes or parts of them, padded to T steps; `action` t leads from state t to t + 1.

    States after `length` repeat the last valid one; steps after it are zero. One condition acts
    throughout: where it changes within an episode, a new part begins.
    """

    observation: Array  # [E, T + 1, O]
    achieved_goal: Array  # [E, T + 1, G]
    desired_goal: Array  # [E, G]
    action: Array  # [E, T, A], each component in [-1, 1]
    reward: Array  # [E, T], the environment's own
    length: IntArray  # [E], in 1..T
    terminated: BoolArray  # [E], the last step ended the task, so nothing is bootstrapped there
    truncated: BoolArray  # [E], the last step took the rest of the time, so its value goes on
    lost: BoolArray  # [E], the last step lost the object for good, and the rest was cut off
    success: BoolArray  # [E], at the last step
    skill: Array  # [E, K], the condition that acted: one-hot or continuous
    earlier_return: Array  # [E], of the steps before these, where an episode comes in parts
    seed: IntArray  # [E], of the reset that began it; a ring of steps joins its parts by it
    task: IntArray  # [E], number of the training task; 0 where there is one task
    visit: IntArray  # [E], the cycle in which the task was visited
    context: BoolArray  # [E], whether the task may be inferred from these steps
    extras: Mapping[str, Array]  # name -> [E, T + 1, D]

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, those of extras as `extras/NAME`."""
        arrays = self._asdict()
        extras = arrays.pop("extras")
        return arrays | {f"extras/{name}": values for name, values in extras.items()}

    def skill_numbers(self) -> IntArray | None:
        """Returns the numbers of one-hot skills, [E]; None where conditions are continuous."""
        one_hot = np.isin(self.skill, (0.0, 1.0)).all() and (self.skill.sum(axis=-1) == 1.0).all()
        return self.skill.argmax(axis=-1).astype(np.int64) if one_hot else None

    def read_only(self) -> "Episodes":
        """Returns the same episodes in arrays that refuse to be written, for code of users."""
        views = {name: values.view() for name, values in self.named().items()}
        for view in views.values():
            view.flags.writeable = False
        return self.from_named(views)

    @classmethod
    def from_named(cls, arrays: Mapping[str, np.ndarray]) -> "Episodes":
        """Returns the episodes whose `named` these arrays are."""
        own = {name: arrays[name] for name in cls._fields if name != "extras"}
        prefix = "extras/"
        names = [name for name in arrays if name.startswith(prefix)]
        return cls(**own, extras={name.removeprefix(prefix): arrays[name] for name in names})


class Transition(NamedTuple):
    """A minibatch of transitions, as replay hands it to rewards and agents.

    `discount` already holds gamma * (1 - terminated or lost): losses never see gamma itself.
    The leading axes are [W, B] inside an update and [U, W, B] for all updates of a cycle.
    """

    observation: Any  # [..., O]
    desired_goal: Any  # [..., G]
    action: Any  # [..., A], each component in [-1, 1]
    reward: Any  # [...], the task reward under `desired_goal`
    discount: Any  # [...], in [0, 1)
    truncated: Any  # [...], true where the time was over, and the episode with it
    lost: Any  # [...], true where the object is lost for good and nothing follows
    next_observation: Any  # [..., O]
    skill: Any  # [..., K]
    episode_return: Any  # [...], sum of the environment's own rewards over the episode
    extras: Any  # name -> [..., D], of the state before the action
    next_extras: Any  # name -> [..., D], of the state after it


def finite(values: npt.ArrayLike) -> BoolArray:
    """Returns which values are numbers in single precision, where 1e39 is infinite."""
    usable: BoolArray = np.abs(values) <= _LARGEST
    return usable


def instead_of_numbers(found: np.ndarray, shape: Sequence[int]) -> str:
    """Says what an array is where finite real numbers of a shape were asked for; empty if it is."""
    if found.dtype.kind not in "biuf":
        return f"{found.flat[0]!r:.80}" if found.size else str(found.dtype)
    if found.shape != tuple(shape):
        return f"shape {found.shape}"
    return "" if all_finite(found) else "non-finite"


ALIGNED = 64
"""TensorFlow computes with what begins at a multiple of so many bytes."""


def aligned(shape: Sequence[int], kind: npt.DTypeLike = np.float32) -> np.ndarray:
    """Returns an unset array that TensorFlow can take over without a copy."""
    wanted = np.dtype(kind)
    size = math.prod(shape) * wanted.itemsize
    room = np.empty(size + ALIGNED, np.uint8)
    start = -room.__array_interface__["data"][0] % ALIGNED
    return room[start : start + size].view(wanted).reshape(shape)


def all_finite(values: npt.ArrayLike) -> bool:
    """Whether all values are numbers in single precision."""
    return bool(np.all(finite(values)))


ACTIONS = ("action",)
"""What a policy needs that is taken elsewhere on purpose."""
SPACES = ("observation", "goal", "action")
"""What weights need."""
ALL = (*SPACES, "episode")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declared:
    """Spaces and length of the episodes of an environment, as JSON can hold them."""

    observation: int = 0
    """How many numbers an observation has, without goals."""
    goal: int = 0
    """How many numbers a goal has, 0 where there are none."""
    low: list[float] = dataclasses.field(default_factory=list)
    """Lowest action, [A]."""
    high: list[float] = dataclasses.field(default_factory=list)
    """Highest action, [A]."""
    steps: int = 0
    """How many an episode has at most."""

    @classmethod
    def of(cls, spec: EnvSpec, low: Array, high: Array) -> "Declared":
        """Returns it by sizes and length, and by the lowest and highest action [A]."""
        return cls(
            observation=spec.observation_dim,
            goal=spec.goal_dim,
            low=low.astype(np.float64).tolist(),
            high=high.astype(np.float64).tolist(),
            steps=spec.max_episode_steps,
        )

    def __post_init__(self) -> None:
        """Refuses bounds of different lengths, which no environment has."""
        if len(self.low) != len(self.high):
            raise ValueError(f"expected as many bounds low as high, got {self.low}, {self.high}")


def refusal(
    before: Declared | None, now: Declared, where: str, compared: Sequence[str] = ALL
) -> str:
    """Returns why an environment is not the one that was trained in; empty where it is.

    Args:
        before: What it declared in training; None where that is not known.
        now: What it declares.
        where: What was trained there, such as a run.
        compared: Some of `ALL`.
    """
    differs = "" if before is None else _difference(before, now, compared)
    cure = "in training the environment was another; make it as it was, or train anew"
    return f"{differs}\n{where}: {cure}" if differs else ""


def _difference(before: Declared, now: Declared, compared: Sequence[str]) -> str:
    """Returns the first difference in words."""
    sizes = {
        "observation": (before.observation, now.observation, "numbers"),
        "goal": (before.goal, now.goal, "numbers"),
        "action": (len(before.low), len(now.low), "numbers"),
        "episode": (before.steps, now.steps, "steps"),
    }
    for name in compared:
        one, other, unit = sizes[name]
        if one != other:
            return f"{name}: trained with {one} {unit}, now {other}"
    return _other_bounds(before, now) if "action" in compared else ""


def _other_bounds(before: Declared, now: Declared) -> str:
    """Says within which bounds actions were and are; of several, the first that differs."""
    were, are = (
        [f"{_shown(low)}..{_shown(high)}" for low, high in zip(one.low, one.high, strict=True)]
        for one in (before, now)
    )
    differ = [
        number for number, (one, other) in enumerate(zip(were, are, strict=True)) if one != other
    ]
    if not differ:
        return ""
    first = differ[0]
    name = "actions" if len({*were}) == len({*are}) == 1 else f"actions[{first}]"
    return f"{name}: trained within {were[first]}, now {are[first]}"


def _shown(bound: float) -> str:
    """Returns a bound in as many digits as tell it from others in single precision."""
    return np.format_float_positional(np.float32(bound), trim="-")
