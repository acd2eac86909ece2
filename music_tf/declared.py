"""What an environment declares of itself; stored with a run, which it must not change under."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from music_tf.types import Array, EnvSpec

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
