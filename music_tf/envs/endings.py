"""Ends of episodes: at a goal, by `compute_terminated`, and as a step returns them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from music_tf.config.names import ROBOTICS, is_one_of
from music_tf.envs.distance import written_in
from music_tf.errors import FROM_USERS

Result: TypeAlias = tuple[Any, Any, Any, Any, Any]
_ROBOTS = "gymnasium_robotics.envs.robot_env:BaseRobotEnv.compute_terminated"
_STEPS = "gymnasium_robotics.envs.robot_env:BaseRobotEnv.step"
_TRIED = 64
"""Number of pairs of goals on which a method is tried."""
_LEAST, _MOST = -3.0, 3.0
"""Decimal logarithms of their smallest and largest distance."""


def ends_at_goals(environment: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment has a `compute_terminated` that can end an episode."""
    unwrapped: Any = environment.unwrapped
    written = written_in(unwrapped, "compute_terminated")
    if not written or written == _ROBOTS or written.endswith(":GoalEnv.compute_terminated"):
        return False
    if written.startswith("gymnasium_robotics.envs.maze."):
        return not unwrapped.continuing_task
    if written.startswith("music_tf.envs.toys:"):
        return bool(unwrapped.terminate_when_reached)
    return True


def never_ends(environment: gymnasium.Env[Any, Any]) -> bool:
    """Whether it is a robot of gymnasium-robotics whose `compute_terminated` is never true."""
    name = "" if environment.spec is None else environment.spec.id
    methods = {written_in(environment.unwrapped, each) for each in ("compute_terminated", "step")}
    return methods == {_ROBOTS, _STEPS} and is_one_of(name, ROBOTICS)


def ends_together(environment: gymnasium.Env[Any, Any], goal_dim: int) -> bool:
    """Whether `compute_terminated` answers for many goals at once as for each of them."""
    achieved, way = np.random.default_rng(0).standard_normal((2, _TRIED, goal_dim))
    far = np.logspace(_LEAST, _MOST, _TRIED) / np.linalg.norm(way, axis=1)
    desired = achieved + far[:, None] * way
    unwrapped: Any = environment.unwrapped
    method = unwrapped.compute_terminated
    try:
        with np.errstate(all="ignore"):
            single = [bool(method(*pair, {})) for pair in zip(achieved, desired, strict=True)]
            many = np.asarray(method(achieved.copy(), desired.copy(), {}))
    except FROM_USERS:  # a fault of single goals appears later, when they are used one by one
        return False
    return many.shape == (_TRIED,) and many.astype(np.bool_).tolist() == single


def as_ended(result: Result) -> Result:
    """Returns what a step returned, at an end without what belongs to the next episode."""
    observation, reward, terminated, truncated, info = result
    if not (terminated or truncated) or not isinstance(info, Mapping):
        return result
    # vectorised simulators begin that in the same step, and keep the last state in the new `info`
    last = info.get("final_info")
    info = {**info, **(last if isinstance(last, Mapping) else {})}
    for name in ("final_obs", "final_observation"):
        last = info.pop(name, None)
        observation = observation if last is None else last
    over = bool(terminated) and not info.get("TimeLimit.truncated")
    return observation, reward, over, truncated or not over, info
