"""Families of tasks for the robots of Gymnasium on MuJoCo: speeds, directions, places, bodies.

Rewards are those of PEARL's authors (arXiv:1903.08254, appendix A, and their code), on the robots
and observations of Gymnasium's version 5. A task is a vector that is not observed: it changes the
reward, or the body of the robot.
"""

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv
from gymnasium.envs.mujoco.walker2d_v5 import Walker2dEnv

from music_tf.envs.simulator import Defaults, settle
from music_tf.errors import UsageError
from music_tf.types import Floats

Robot: TypeAlias = gymnasium.Env[Floats, npt.NDArray[np.float32]]

_CHEETAH_EFFORT = 0.05
"""Cost of the squared action of a cheetah, half of Gymnasium's."""
_GOAL_EFFORT, _GOAL_RADIUS = 0.1, 3.0
"""The same cost of an ant that looks for a place, and the largest distance of places in metres."""
_LARGEST_EXPONENT = 3.0


class Family(
    gymnasium.Wrapper[Floats, npt.NDArray[np.float32], Floats, npt.NDArray[np.float32]], abc.ABC
):
    """A robot with the reward of its task, less the robot's own costs of effort and contact."""

    def __init__(self, robot: Robot, task: Sequence[float], alive: float = 0.0) -> None:
        """Takes the robot, its first task, and a reward for each step, also for that of a fall."""
        super().__init__(robot)
        self._task, self._alive = np.array(task, np.float64), alive

    @abc.abstractmethod
    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws tasks, [count, D]."""

    def set_task(self, task: Floats) -> None:
        """Sets the task, [D], from the next reset on."""
        self._task = np.array(task, np.float64)

    @abc.abstractmethod
    def paid(self, info: dict[str, Any]) -> float:
        """Returns the task's reward of a step with this `info`."""

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        paid = self.paid(info)
        costs = info["reward_ctrl"] + info.get("reward_contact", 0.0)
        reward = float(paid + self._alive + costs)
        return observation, reward, terminated, truncated, {**info, "reward_task": paid}


class Velocity(Family):
    """Run at a speed. Task: metres a second, [1], uniform from 0 to `fastest`."""

    def __init__(self, robot: Robot, fastest: float) -> None:
        super().__init__(robot, [0.0])
        if not fastest > 0.0:
            raise UsageError(
                f"env.kwargs: fastest: expected a speed above 0 m/s, got {fastest!r:.80}"
            )
        self._fastest = float(fastest)

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        return generator.uniform(0.0, self._fastest, (count, 1))

    def paid(self, info: dict[str, Any]) -> float:
        return -abs(float(info["x_velocity"] - self._task[0]))


class ForwardOrBack(Family):
    """Run forward or back. Task: 1 or -1, [1], alternating in a draw so that both occur."""

    def __init__(self, robot: Robot, sign: float) -> None:
        if sign not in (1, -1):
            raise UsageError(f"env.kwargs: sign: expected 1 or -1, got {sign!r:.80}")
        super().__init__(robot, [sign])

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        del generator
        return _in_turns(count)[:, None]

    def paid(self, info: dict[str, Any]) -> float:
        return float(self._task[0] * info["x_velocity"])


class Direction(Family):
    """Walk in a direction of the plane, or forward and back alone. Task: its unit vector, [2]."""

    def __init__(
        self, robot: Robot, alive: float, weight: float, forward_backward: bool = False
    ) -> None:
        """Takes the robot, the reward of a step, and that of a metre per second."""
        super().__init__(robot, [1.0, 0.0], alive)
        self._weight, self._along_x = weight, forward_backward

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        if self._along_x:
            return np.stack([_in_turns(count), np.zeros(count)], axis=-1)
        return _around(generator.uniform(0.0, 2.0 * math.pi, count))

    def paid(self, info: dict[str, Any]) -> float:
        velocity = np.array([info["x_velocity"], info["y_velocity"]])
        return self._weight * float(velocity @ self._task)


class Place(Family):
    """Walk to a place. Task: its x and y in metres, [2], anywhere within 3 metres of the start."""

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws places, uniform in angle; radii are 3 sqrt(U)."""
        directions = _around(generator.uniform(0.0, 2.0 * math.pi, count))
        radii = _GOAL_RADIUS * np.sqrt(generator.uniform(0.0, 1.0, (count, 1)))
        return np.asarray(radii * directions)

    def paid(self, info: dict[str, Any]) -> float:
        x, y = self._task
        return -float(abs(info["x_position"] - x) + abs(info["y_position"] - y))


class OtherBody(Family):
    """Walk forward in another body; tasks are exponents [D] of its parameters that are not 0."""

    _BASES: ClassVar[dict[str, float]] = {
        **dict.fromkeys(("body_mass", "body_inertia", "geom_friction"), 1.5),
        "dof_damping": 1.3,
    }

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot, (), alive=1.0)
        unwrapped: Any = robot.unwrapped
        self._model, self._data = unwrapped.model, unwrapped.data
        self._defaults = Defaults(self._model, self._BASES)
        self._changed = {name: values != 0.0 for name, values in self._defaults.arrays.items()}
        self._size = sum(int(changed.sum()) for changed in self._changed.values())

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        return generator.uniform(-_LARGEST_EXPONENT, _LARGEST_EXPONENT, (count, self._size))

    def set_task(self, task: Floats) -> None:
        """Sets the body of these exponents; if all are 0, it is exactly the default."""
        self._defaults.restore()
        begin = 0
        for name, changed in self._changed.items():
            end = begin + int(changed.sum())
            getattr(self._model, name)[changed] *= self._BASES[name] ** task[begin:end]
            begin = end
        settle(self._model, self._data)

    def paid(self, info: dict[str, Any]) -> float:
        return float(info["x_velocity"])


def half_cheetah_velocity(*, fastest: float = 3.0, **options: Any) -> Family:
    """Makes a cheetah that runs at a speed: -|v - v'| - 0.05 |a|^2."""
    return Velocity(HalfCheetahEnv(**{"ctrl_cost_weight": _CHEETAH_EFFORT, **options}), fastest)


def half_cheetah_direction(*, sign: float = 1.0, **options: Any) -> Family:
    """Makes a cheetah that runs forward or back (`sign`, unless it adapts): +-v - 0.05 |a|^2."""
    return ForwardOrBack(HalfCheetahEnv(**{"ctrl_cost_weight": _CHEETAH_EFFORT, **options}), sign)


def ant_direction(*, forward_backward: bool = False, **options: Any) -> Family:
    """Makes an ant that walks in a direction: v.d + 1 - 0.5 |a|^2 - 0.0005 |contact|^2."""
    return Direction(AntEnv(**options), 1.0, 1.0, forward_backward)


def ant_hidden_goal(**options: Any) -> Family:
    """Makes an ant that walks to a place: -|x - p|_1 - 0.1 |a|^2 - 0.0005 |contact|^2.

    It observes x and y, and no episode ends with a fall.
    """
    fixed = {
        "ctrl_cost_weight": _GOAL_EFFORT,
        "terminate_when_unhealthy": False,
        "exclude_current_positions_from_observation": False,
    }
    return Place(AntEnv(**{**fixed, **options}), [0.0, 0.0])


def humanoid_direction(*, forward_backward: bool = False, **options: Any) -> Family:
    """Makes a humanoid that walks in a direction: 1.25 v.d + 5 - 0.1 |control|^2 - contact.

    1.25 v is the authors' value: a quarter of the distance of a step, divided by the simulator's
    time step, which is a fifth of a step. Contact costs 5e-7 |force|^2, at most 10.
    """
    return Direction(HumanoidEnv(**options), 5.0, 1.25, forward_backward)


def walker_bodies(**options: Any) -> Family:
    """Makes walkers of different bodies: v + 1 - 0.001 |a|^2."""
    return OtherBody(Walker2dEnv(**options))


def hopper_bodies(**options: Any) -> Family:
    """Makes hoppers of different bodies: v + 1 - 0.001 |a|^2."""
    return OtherBody(HopperEnv(**options))


def _in_turns(count: int) -> Floats:
    return np.power(-1.0, np.arange(count, dtype=np.float64))


def _around(angles: Floats) -> Floats:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
