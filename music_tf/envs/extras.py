"""Named columns beside an observation: entries of `info`, and what functions of the user's read.

How long each is, and which entries `compute_reward` asks for, is found out once, when the first
environment has been made.
"""

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.names import few, suggestion
from music_tf.config.world import DESCRIPTOR, GOAL, READ, TIME, load_function
from music_tf.envs import simulator
from music_tf.envs.registry import INFO, EnvironmentInfo
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.types import all_finite

Reader: TypeAlias = Callable[[Any], Any]
"""What a function of the user's reads from an unwrapped environment: a number, or several [D]."""


class Extras(NamedTuple):
    """What is kept beside each state."""

    sizes: Mapping[str, int] = {}
    """Of each, in the order in which they are kept."""
    readers: Mapping[str, Reader | None] = {}
    """What members read, so neither achieved goals nor times; None for an entry of `info`."""
    asked: Mapping[str, tuple[int, ...]] = {}
    """Entries of `info` that `compute_reward` reads, with their shapes."""
    played: bool = False
    """Whether the environment took a step to find that out."""


class Asked(dict[str, Any]):
    """An `info` that remembers which of its entries somebody asked for."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        """Returns an entry."""
        self.names[name] = None
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an entry, or what counts where there is none."""
        self.names[name] = None
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        """Whether there is such an entry."""
        self.names[str(name)] = None
        return super().__contains__(name)


def find_extras(env_id: str, environment: gymnasium.Env[Any, Any], info: EnvironmentInfo) -> Extras:
    """Returns what is kept beside each state of an environment; it may take a step for that.

    Raises:
        UsageError: The environment gives no such entry, or a function no numbers of one axis.
        EnvironmentFault: The environment does not step.
    """
    asked, fails = asked_by_reward(environment, {})
    entries: Mapping[str, Any] = {}
    played = bool(asked or fails or {*info.extras.values()} - {GOAL, TIME})
    if played:
        entries = _entries_of_a_step(env_id, environment)
        asked, _ = asked_by_reward(environment, entries)
    sizes: dict[str, int] = {}
    readers: dict[str, Reader | None] = {}
    for name, source in info.extras.items():
        option = "world.descriptor" if name == DESCRIPTOR and source != INFO else "world.extras"
        if source == GOAL:
            sizes[name] = len(_no_goal(environment))
            if not sizes[name]:
                raise UsageError(
                    f"{option}: {GOAL} needs goals, and {env_id} has none\n"
                    "for example: --world.descriptor observation"
                )
        elif source == TIME:
            sizes[name] = 1
        elif source == INFO:
            if name not in entries:
                raise UsageError(
                    f"{option}: expected what a step of {env_id} has in its info, got {name!r}; "
                    f"it has {few(list(entries)) or 'nothing'}{suggestion(name, entries)}"
                )
            readers[name] = None
            sizes[name] = math.prod(_shape(f"{option}: info[{name!r}]", entries[name]))
        else:
            reader = readers[name] = load_function(source, option)
            sizes[name] = _size(reader, environment, f"{option}: {_called(source)}", env_id)
    shapes = {}
    for name in (name for name in asked if name in entries):
        if info.extras.get(name, INFO) != INFO:
            raise UsageError(f"world: rewards read info[{name!r}], so no other extra may be {name}")
        shapes[name] = _shape(f"{env_id}: info[{name!r}], which its rewards read", entries[name])
        sizes[name], readers[name] = math.prod(shapes[name]), None
    return Extras(sizes, readers, shapes, played)


def _called(source: str) -> str:
    """Returns how a user knows a function that reads the environment."""
    return next((word for word, function in READ.items() if function == source), source)


def _size(reader: Reader, environment: gymnasium.Env[Any, Any], what: str, env_id: str) -> int:
    """Returns how many numbers a function reads from an environment."""
    try:
        value = reader(environment.unwrapped)
    except UsageError as error:
        raise UsageError(f"{what} on {env_id}: {error}") from error
    except Exception as error:  # whatever a function of the user's raises
        text = f"{type(error).__name__}: {str(error)[:200]}"
        raise UsageError(f"{what} fails on {env_id}: {text}") from error
    return math.prod(_shape(f"{what} on {env_id}", value))


def asked_by_reward(
    environment: gymnasium.Env[Any, Any], entries: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Returns the entries of `info` that `compute_reward` asks for, and whether it fails.

    It is called for a goal that is met and for one that is missed.
    """
    names: dict[str, None] = {}
    goal, fails = _no_goal(environment), False
    unwrapped: Any = environment.unwrapped
    for desired in (goal, goal + 1.0) if len(goal) else ():
        info = Asked(entries)
        try:
            with np.errstate(all="ignore"):
                unwrapped.compute_reward(goal.copy(), desired.copy(), info)
        except Exception:  # whatever it throws is told where its rewards count
            fails = True
        names |= info.names
    return list(names), fails


def _no_goal(environment: gymnasium.Env[Any, Any]) -> npt.NDArray[np.float64]:
    """Returns a goal of zeros, of size 0 where there are no goals."""
    space = environment.observation_space
    if not isinstance(space, gymnasium.spaces.Dict):
        return np.zeros(0)
    return np.zeros(space["desired_goal"].shape or 0)


def _entries_of_a_step(env_id: str, environment: gymnasium.Env[Any, Any]) -> Mapping[str, Any]:
    """Returns the `info` of a first step, with the action in the middle of its bounds."""
    space: Any = environment.action_space
    try:
        environment.reset(seed=0)
        with np.errstate(all="ignore"):
            *_, info = environment.step((0.5 * (space.low + space.high)).astype(space.dtype))
    except Exception as error:  # whatever the environment throws
        raise EnvironmentFault(
            f"{env_id}: reset or step fails ({type(error).__name__}: {str(error)[:200]})\n"
            "see music-tf check-env"
        ) from error
    simulator.take_warnings()
    return dict(info)


def _shape(what: str, value: Any) -> tuple[int, ...]:
    """Returns the shape of one number or several in a row, and refuses anything else."""
    came = type(value).__name__
    with contextlib.suppress(TypeError, ValueError):
        numbers = np.asarray(value, np.float64)
        if numbers.ndim <= 1 and numbers.size and all_finite(numbers):
            return numbers.shape
        came = f"shape {numbers.shape}" if all_finite(numbers) else f"{value!r:.80}"
    raise UsageError(f"{what}: expected a finite number, or several of one axis, got {came}")
