"""Containers passed between stages, and the shape letters of comments.

W workers of this rank, U updates, B batch, E environments or episodes, T steps of an episode,
M trajectories, N states of a trajectory, C critics, O observation, G goal, H place of the hand
or object, A action, K skills or numbers in a continuous condition.

The containers hold numpy arrays between environments and replay, and tensors inside a learner.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
"""Numbers of a simulator, a table or a sum, in double precision."""
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Lowest and highest action [A], in the type of actions."""
Metrics: TypeAlias = dict[str, float]
"""Values by name `group/quantity`, the same in TensorBoard, CSV and summary."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitSpec:
    """Columns of the observation that belong to the robot, and to its surroundings."""

    agent: tuple[int, ...]
    surrounding: tuple[int, ...]


A_PLACE = np.float32(1e-30)
"""Added to places of the hand, so that one at 0 is told from none; no other changes by it."""


class Reach(NamedTuple):
    """What replay needs to give the hand goals, too: places [H] that it has to reach."""

    hand: tuple[int, ...]
    """Columns of the hand's place in an observation."""
    object: tuple[int, ...]
    """Columns of the object's place, in the same order."""
    within: float
    """Distance at which the hand is at a place."""
    rewards: tuple[float, float]
    """What a step pays away from a place, and at it."""

    @property
    def columns(self) -> Array:
        """Columns of hand and object, [2, H], as numbers that snapshots and checkpoints hold."""
        return np.array([self.hand, self.object], np.float32)

    def goals(self, goal: Array, place: Array, reaches: BoolArray) -> Array:
        """Joins goals and places [..., H], with zeros for the one that does not count."""
        zero, leads = np.float32(0.0), reaches[..., None]
        halves = np.where(leads, zero, goal), np.where(leads, place + A_PLACE, zero)
        return np.concatenate(halves, axis=-1)

    def reward(self, observation: Array, place: Array) -> Array:
        """Returns the reward [...] for the hand in observations [..., O] under places [..., H]."""
        distance = np.linalg.norm(observation[..., list(self.hand)] - place, axis=-1)
        away, there = map(np.float32, self.rewards)
        return np.where(distance <= self.within, there, away)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """Sizes and layout of an environment."""

    env_id: str
    observation_dim: int
    goal_dim: int
    action_dim: int
    max_episode_steps: int
    split: SplitSpec | None = None
    """None if the environment has no surroundings to control."""
    extras: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Sizes of named columns beside the observation (`world.extras`)."""
    reach: Reach | None = None
    """Set where hindsight also leads the hand to the object."""

    @property
    def seen_goal(self) -> int:
        """Size of the goals that networks see."""
        return self.goal_dim + (len(self.reach.hand) if self.reach else 0)


def offsets(columns: Array, observation: Array, goal: Array, place: Array) -> Array:
    """Returns how far the object has to move to goals, and the hand to places, [..., 2 H].

    `columns` [2, H] are those of hand and object. Where a place is all zeros, the hand has to go to
    the object.
    """
    hand, thing = (observation[..., of] for of in columns.astype(np.int64))
    place = np.where(place.any(axis=-1, keepdims=True), place, thing)
    return np.concatenate([goal - thing, place - hand], axis=-1)


def kept_steps(length: IntArray, steps: int) -> BoolArray:
    """Returns a mask of the steps within each episode's length, [E, T]."""
    return np.arange(steps) < length[:, None]


EXTRAS = "extras/"
"""Prefix of the names of extras among all arrays."""


class Episodes(NamedTuple):
    """Episodes or parts of them, padded to T steps; `action` t leads from state t to t + 1.

    States after `length` repeat the last valid one; steps after it are zero. Each has one
    condition: if the condition changes within an episode, a new part begins.
    """

    observation: Array  # [E, T + 1, O]
    achieved_goal: Array  # [E, T + 1, G]
    desired_goal: Array  # [E, G]
    action: Array  # [E, T, A], each component in [-1, 1]
    reward: Array  # [E, T], the environment's own
    length: IntArray  # [E], in 1..T
    terminated: BoolArray  # [E], the last step ended the task: no bootstrapping
    truncated: BoolArray  # [E], a time limit ended the episode: bootstrapping
    lost: BoolArray  # [E], the object was lost for good at the last step, and the rest was cut off
    success: BoolArray  # [E], at the last step
    succeeded: BoolArray  # [E], at any step
    skill: Array  # [E, K], the condition: one-hot or continuous
    earlier_return: Array  # [E], of earlier parts of the episode
    seed: IntArray  # [E], of the episode's reset; `StepRing` joins parts of an episode by it
    task: IntArray  # [E], index of the training task; 0 in a run with one task
    visit: IntArray  # [E], the cycle in which the task was visited
    context: BoolArray  # [E], whether these steps are context for inferring the task
    extras: Mapping[str, Array]  # name -> [E, T + 1, D]

    @property
    def step_mask(self) -> BoolArray:
        return kept_steps(self.length, self.action.shape[1])

    @property
    def state_mask(self) -> BoolArray:
        return kept_steps(self.length + 1, self.observation.shape[1])

    def named(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, those of extras with the prefix `EXTRAS`."""
        arrays = self._asdict()
        extras = arrays.pop("extras")
        return arrays | {f"{EXTRAS}{name}": values for name, values in extras.items()}

    def skill_numbers(self) -> IntArray | None:
        """Returns the indices of one-hot skills, [E]; None for continuous conditions."""
        one_hot = np.isin(self.skill, (0.0, 1.0)).all() and (self.skill.sum(axis=-1) == 1.0).all()
        return self.skill.argmax(axis=-1).astype(np.int64) if one_hot else None

    def read_only(self) -> "Episodes":
        """Returns read-only views of the arrays, for user code."""
        views = {name: values.view() for name, values in self.named().items()}
        for view in views.values():
            view.flags.writeable = False
        return self.from_named(views)

    @classmethod
    def from_named(cls, arrays: Mapping[str, np.ndarray]) -> "Episodes":
        """Inverts `named`."""
        fields = {name: arrays[name] for name in cls._fields if name != "extras"}
        names = [name for name in arrays if name.startswith(EXTRAS)]
        return cls(**fields, extras={name.removeprefix(EXTRAS): arrays[name] for name in names})

    def rows(self, start: int, end: int | None, step: int = 1) -> "Episodes":
        return self.at(slice(start, end, step))

    def at(self, chosen: slice | IntArray | BoolArray) -> "Episodes":
        return self.from_named({name: values[chosen] for name, values in self.named().items()})

    @classmethod
    def joined(cls, parts: Iterable["Episodes"]) -> "Episodes":
        """Returns the episodes of all parts, one part after the other; at least one part."""
        named = [part.named() for part in parts]
        return cls.from_named({n: np.concatenate([each[n] for each in named]) for n in named[0]})


class Transition(NamedTuple):
    """A minibatch of transitions from replay, for rewards and agents.

    `discount` is gamma, or 0 where no next state counts, so losses have no other gamma. The leading
    axes are [W, B] inside an update and [U, W, B] for all updates of a cycle.
    """

    observation: Any  # [..., O]
    desired_goal: Any  # [..., G], or [..., G + H] with places of the hand
    action: Any  # [..., A], each component in [-1, 1]
    reward: Any  # [...], the reward under `desired_goal`
    discount: Any  # [...], in [0, 1)
    truncated: Any  # [...], true where a time limit ended the episode
    lost: Any  # [...], true where the object is lost for good, which ends the episode
    next_observation: Any  # [..., O]
    skill: Any  # [..., K]
    episode_return: Any  # [...], sum of the environment's own rewards over the episode
    extras: Any  # name -> [..., D], of the state before the action
    next_extras: Any  # name -> [..., D], of the state after it


def finite(values: npt.ArrayLike) -> BoolArray:
    """Returns which values are finite in single precision, where 1e39 is infinite."""
    return np.abs(values) <= _LARGEST


def instead_of_numbers(values: np.ndarray, shape: Sequence[int]) -> str:
    """Describes an array that does not have finite real numbers of a shape; else returns ""."""
    if values.dtype.kind not in "biuf":
        return f"{values.flat[0]!r:.80}" if values.size else str(values.dtype)
    if values.shape != tuple(shape):
        return f"shape {values.shape}"
    return "" if all_finite(values) else "non-finite"


ALIGNED = 64
"""Alignment in bytes of memory that TensorFlow can use without a copy."""


def aligned(shape: Sequence[int], kind: npt.DTypeLike = np.float32) -> np.ndarray:
    """Returns an uninitialised array that TensorFlow can use without a copy."""
    wanted = np.dtype(kind)
    size = math.prod(shape) * wanted.itemsize
    room = np.empty(size + ALIGNED, np.uint8)
    start = -room.__array_interface__["data"][0] % ALIGNED
    return room[start : start + size].view(wanted).reshape(shape)


def all_finite(values: npt.ArrayLike) -> bool:
    return bool(np.all(finite(values)))


ACTIONS = ("action",)
"""Compared if a policy is used in another environment on purpose."""
SPACES = ("observation", "goal", "action")
"""Compared if weights are used with other episodes."""
ALL = (*SPACES, "episode")
"""Compared if a run is used as it was trained."""


def to_bounds(actions: Array, bounds: Bounds | None) -> np.ndarray:
    """Maps actions [..., A] in [-1, 1] to bounds, in their type; -1 and 1 change no bit."""
    if bounds is None:
        raise ValueError(
            "act: the bounds of actions are unknown, since earlier versions did not store them; "
            "unit=True gives actions in [-1, 1]"
        )
    low, high = bounds
    if low.dtype.kind == "f" and {*low.tolist()} == {-1.0} and {*high.tolist()} == {1.0}:
        return actions.astype(low.dtype)
    first, last = low.astype(np.float32), high.astype(np.float32)
    scaled = np.clip(first + 0.5 * (actions + 1.0) * (last - first), first, last)
    if np.issubdtype(low.dtype, np.integer):  # single precision may round beyond their bounds
        scaled = np.rint(scaled)
        with np.errstate(invalid="ignore"):
            whole = scaled.astype(low.dtype)
        scaled = np.where(scaled >= last, high, np.where(scaled <= first, low, whole))
    return np.asarray(np.clip(scaled.astype(low.dtype), low, high))


def to_unit(actions: Array, bounds: Bounds | None) -> Array:
    """Inverts `to_bounds`; a component with equal bounds counts as 0."""
    low, high = (-np.ones(1), np.ones(1)) if bounds is None else bounds
    middle, half = 0.5 * (low + high.astype(float)), 0.5 * (high - low.astype(float))
    wide = half > 0.0
    return np.where(wide, (actions - middle) / np.where(wide, half, 1.0), 0.0).astype(np.float32)


def bounds_of(declared: Mapping[str, Any]) -> Bounds:
    """Returns the bounds of actions [A] in their type, of `Declared` as JSON values."""
    kind, sides = np.dtype(declared["type"]), [declared["low"], declared["high"]]
    if kind.kind in "iu":  # the double nearest to a bound may lie beyond it
        ends = np.iinfo(kind)
        sides = [[min(max(int(end), ends.min), ends.max) for end in side] for side in sides]
    return np.array(sides[0], kind), np.array(sides[1], kind)


def moved_first(way: np.ndarray, groups: int, near: float) -> np.ndarray:
    """Marks the object to move first: nearest to its goal but not `near` it, else the farthest."""
    length = np.linalg.norm(way.reshape(*way.shape[:-1], groups, -1), axis=-1)
    away = length > near
    order = np.where(away.any(axis=-1, keepdims=True), np.where(away, length, np.inf), -length)
    mine = np.arange(groups) == order.argmin(axis=-1)[..., None]
    return np.asarray(mine.repeat(way.shape[-1] // groups, axis=-1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declared:
    """Spaces of an environment and length of its episodes, as JSON values."""

    observation: int = 0
    """Size of an observation, without goals."""
    goal: int = 0
    """Size of a goal; 0 without goals."""
    low: list[float] = dataclasses.field(default_factory=list)
    """Lowest action, [A]."""
    high: list[float] = dataclasses.field(default_factory=list)
    """Highest action, [A]."""
    type: str = "float32"
    steps: int = 0
    """Maximum number of steps of an episode."""

    @classmethod
    def of(cls, spec: EnvSpec, low: np.ndarray, high: np.ndarray) -> "Declared":
        return cls(
            observation=spec.observation_dim,
            goal=spec.goal_dim,
            low=low.astype(np.float64).tolist(),
            high=high.astype(np.float64).tolist(),
            type=low.dtype.name,
            steps=spec.max_episode_steps,
        )

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise ValueError(f"expected as many bounds low as high, got {self.low}, {self.high}")
        if np.dtype(np.sctypeDict.get(self.type, object)).kind not in "biuf":
            raise ValueError(f"expected a type of numbers, got {self.type!r:.80}")


def refusal(
    before: Declared | None, now: Declared, where: str, compared: Sequence[str] = ALL
) -> str:
    """Returns how an environment differs from that of training in `compared`, or nothing."""
    if before is None:
        return ""
    cure = f"{where}: the environment was different in training; restore it, or train again"
    sizes = {
        "observation": (before.observation, now.observation, "numbers"),
        "goal": (before.goal, now.goal, "numbers"),
        "action": (len(before.low), len(now.low), "numbers"),
        "episode": (before.steps, now.steps, "steps"),
    }
    for name in compared:
        then, today, unit = sizes[name]
        if then != today:
            return f"{name}: trained with {then} {unit}, now {today}\n{cure}"
    were, are = _shown_bounds(before), _shown_bounds(now)
    if "action" not in compared or were == are:
        return ""
    first = next(number for number in range(len(were)) if were[number] != are[number])
    name = "actions" if len({*were}) == len({*are}) == 1 else f"actions[{first}]"
    return f"{name}: trained within {were[first]}, now {are[first]}\n{cure}"


def _shown_bounds(declared: Declared) -> list[str]:
    """Bounds of each action, with as many digits as single precision has."""
    shown = functools.partial(np.format_float_positional, trim="-")
    bounds = np.array([declared.low, declared.high], np.float32)
    return [f"{shown(low)}..{shown(high)}" for low, high in bounds.T]
