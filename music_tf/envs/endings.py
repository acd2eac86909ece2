"""Which episodes end at their goal: `compute_terminated` of Gymnasium's goal environments."""

from typing import Any

import gymnasium
import numpy as np

from music_tf.envs.distance import written_in
from music_tf.errors import FROM_USERS

_ROBOTS = "gymnasium_robotics.envs.robot_env:BaseRobotEnv.compute_terminated"
_TRIED = 64
"""Pairs of goals on which a method is tried."""
_LEAST, _MOST = -3.0, 3.0
"""Decimal logarithms of their smallest and largest distance."""


def ends_at_goals(environment: gymnasium.Env[Any, Any]) -> bool:
    """Whether `compute_terminated` of an environment can end an episode.

    Some have none, or one that says so of no goal, whatever happens.
    """
    unwrapped: Any = environment.unwrapped
    written = written_in(unwrapped, "compute_terminated")
    if not written or written == _ROBOTS or written.endswith(":GoalEnv.compute_terminated"):
        return False
    if written.startswith("gymnasium_robotics.envs.maze."):
        return not unwrapped.continuing_task
    if written.startswith("music_tf.envs.toys:"):
        return bool(unwrapped.terminate_when_reached)
    return True


def ends_together(environment: gymnasium.Env[Any, Any], goal_dim: int) -> bool:
    """Whether `compute_terminated` says of many goals at once what it says of single ones.

    It is tried on pairs at all distances from a thousandth to a thousand.
    """
    generator = np.random.default_rng(0)
    achieved, way = generator.standard_normal((2, _TRIED, goal_dim))
    far = np.logspace(_LEAST, _MOST, _TRIED) / np.linalg.norm(way, axis=1)
    desired = achieved + far[:, None] * way
    unwrapped: Any = environment.unwrapped
    method = unwrapped.compute_terminated
    try:
        with np.errstate(all="ignore"):
            single = [bool(method(*pair, {})) for pair in zip(achieved, desired, strict=True)]
            many = np.asarray(method(achieved.copy(), desired.copy(), {}))
    except FROM_USERS:  # whatever it throws: then it is called one by one, and throws there
        return False
    return many.shape == (_TRIED,) and many.astype(np.bool_).tolist() == single
