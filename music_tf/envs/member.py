"""One environment of a lockstep batch, which writes its observations into given rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.config.world import DISCOUNT
from music_tf.envs import simulator
from music_tf.envs.actions import as_declared
from music_tf.envs.changes import Changes
from music_tf.envs.endings import as_ended
from music_tf.envs.extras import InfoEntry, Reader
from music_tf.envs.making import GOAL_KEYS
from music_tf.errors import MusicError, error_line
from music_tf.types import Floats


class Row(NamedTuple):
    """The row of a member for one observation: views into the batch's arrays."""

    observation: Floats  # [O]
    achieved_goal: Floats  # [G]
    desired_goal: Floats  # [G]
    extras: Mapping[str, Floats] = MappingProxyType({})  # name -> [D]


class Outcome(NamedTuple):
    """Results of a step beside the observation."""

    reward: float
    terminated: bool
    truncated: bool
    success: bool


class BadObservation(Exception):  # noqa: N818  (a report about an environment, not our error)
    """An environment returned something that does not fit its spaces."""


def answers_wrongly(error: BaseException) -> bool:
    """Whether the fault is a wrong return value, and not an exception inside the environment."""
    return isinstance(error, BadObservation) or "values to unpack" in str(error)


def one_line(error: BaseException) -> str:
    """Returns an exception of an environment as one line, with advice for a wrong return value."""
    if isinstance(error, MusicError | BadObservation):
        return " ".join(str(error).splitlines())
    text = error_line(error)
    if "values to unpack" not in text:
        return text
    return (
        f"{text}: reset must give (observation, info), "
        "step (observation, reward, terminated, truncated, info)"
    )


class PlainMember:
    """Steps any Gymnasium environment; an extra that only steps have is zero at a reset."""

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        success_ends: bool | None = None,
        extras: Mapping[str, Reader | InfoEntry | None] = MappingProxyType({}),
        beginning: simulator.Beginning | None = None,
    ) -> None:
        # Without `success_ends`, its success ends an episode unless the shown goal is another one,
        # since the environment's cannot be set. Without `beginning` it is as it was made.
        self._readers = extras
        self._success_ends = success_ends
        self._shown: Floats | None = None
        self._hidden = False
        self.says_success = False
        """Whether the info of a step has told if it succeeds."""
        self.environment = environment
        self.changes: Changes | None = None
        """Applies stages of a changing world; None if the world does not change."""
        self._unwrapped: Any = environment.unwrapped
        self._beginning = beginning or simulator.Beginning(self._unwrapped)
        self._counts = simulator.Counts(self._unwrapped)

    def start(
        self, seed: int, goal: Floats | None, row: Row, stage: int, task: Floats | None
    ) -> None:
        """Resets in a stage, which the reset must keep, and in a task if it is given."""
        if self.changes is not None:
            self.changes.apply(stage)
        if task is not None:
            self.environment.get_wrapper_attr("set_task")(task.copy())
        self.reset(seed, goal, row)
        if self.changes is not None:
            self.changes.check()
        simulator.catch_warnings()  # anew: libraries and environments install handlers too
        simulator.take_warnings()
        self._counts = simulator.Counts(self._unwrapped)

    def warnings(self) -> list[str]:
        """Returns what MuJoCo warned of since the last call, whoever handles its messages."""
        return simulator.take_warnings() or self._counts.new()

    def begin(self, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Resets the environment, independent of earlier episodes; returns what it returned."""
        self._beginning.restore()
        observation, info = self.environment.reset(seed=seed)
        return observation, info

    def reset(self, seed: int, goal: Floats | None, row: Row) -> None:
        """Starts the episode of this seed, independent of earlier episodes."""
        observation, info = self.begin(seed)
        write_row(observation, row)
        self._write_extras(row, info, begins=True)
        self._shown = goal
        self._hidden = goal is not None and not can_set_goal(self._unwrapped)
        if goal is not None:
            show_goal(self._unwrapped, goal)
            row.desired_goal[:] = goal

    def step(self, action: npt.NDArray[np.float32], row: Row) -> Outcome:
        """Applies an action and writes the next state."""
        with np.errstate(all="ignore"):  # the results are checked
            result = self.environment.step(action)
        observation, reward, terminated, truncated, info = as_ended(result)
        write_row(observation, row)
        if not isinstance(info, Mapping):
            raise BadObservation(f"info: expected a dict, got {info!r:.80}")
        self._write_extras(row, info)
        if self._shown is not None:
            row.desired_goal[:] = self._shown
        success = succeeded(info)
        self.says_success |= "is_success" in info or "success" in info
        ends = not self._hidden if self._success_ends is None else self._success_ends
        over = bool(terminated) and (ends or not success)
        return Outcome(number("reward", reward), over, bool(truncated), success)

    def _write_extras(self, row: Row, info: Mapping[str, Any], begins: bool = False) -> None:
        """Copies extras from `info` and from functions; an extra of size 1 may be a number."""
        for name, reader in self._readers.items():
            target = row.extras[name]
            if begins and not callable(reader) and name not in info:
                target[:] = 0.0
                continue
            if isinstance(reader, InfoEntry):
                value: Any = reader.numbers(info, name)
            else:
                value = info.get(name) if reader is None else reader(self._unwrapped)
            alone = target.shape == (1,) and value is not None
            _write(f"extras[{name!r}]", np.reshape(value, -1) if alone else value, target)
            if name == DISCOUNT and not 0.0 <= target[0] <= 1.0:
                raise BadObservation(f"info[{name!r}]: expected 0 to 1, got {value!r:.80}")


def write_row(observation: Any, row: Row) -> None:
    if not isinstance(observation, Mapping):
        _write("observation", observation, row.observation)
        return
    for key, target in zip(GOAL_KEYS, row[:3], strict=True):
        _write(key, observation.get(key), target)


def number(name: str, value: Any) -> float:
    shape = getattr(value, "shape", ())
    if shape:
        cure = f": return float({name}[0])" if tuple(shape) == (1,) else ""
        raise BadObservation(f"{name}: expected a number, got shape {tuple(shape)}{cure}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise BadObservation(f"{name}: expected a number, got {value!r:.80}") from error


def succeeded(info: Mapping[str, Any]) -> bool:
    """Whether a step succeeds, by `is_success` of its info, or else by `success`."""
    name = "is_success" if "is_success" in info else "success"
    value = info.get(name, False)
    try:
        is_flag = value in (0, 1)
    except ValueError:  # an array of several values
        is_flag = False
    if not is_flag:
        expected = "expected True or False, as of distance < 0.05"
        raise BadObservation(f"info[{name!r}]: {expected}, got {value!r:.80}")
    return bool(value)


def _write(name: str, value: Any, target: Floats) -> None:
    if np.shape(value) != target.shape:
        came = "nothing" if value is None else f"shape {np.shape(value)}"
        raise BadObservation(f"{name}: expected shape {target.shape}, got {came}")
    target[:] = value


def can_set_goal(unwrapped: Any) -> bool:
    """Whether an environment has an attribute `goal`, no method and no read-only property."""
    declared = getattr(type(unwrapped), "goal", None)
    if isinstance(declared, property) and declared.fset is None:
        return False
    return hasattr(unwrapped, "goal") and not callable(unwrapped.goal)


def show_goal(unwrapped: Any, goal: Floats) -> None:
    """Replaces the goal of a running episode; if it cannot be set, observations alone show it."""
    if not can_set_goal(unwrapped):
        return
    spaces = getattr(getattr(unwrapped, "observation_space", None), "spaces", {})
    kind = spaces["desired_goal"].dtype if "desired_goal" in spaces else np.float64
    unwrapped.goal = as_declared(goal.astype(np.float64), kind)
    if hasattr(unwrapped, "update_target_site_pos"):
        unwrapped.update_target_site_pos()
