"""Sparse task rewards of the distance to the goal, which a GPU can compute too."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from music_tf.types import Array


class DistanceReward(NamedTuple):
    """Reward of a step: `near` if |achieved - desired| is at most `threshold`, else `far`."""

    threshold: float
    near: float
    far: float
    ends: bool = False
    """Whether an episode ends if the goal is near."""

    def __call__(self, achieved: Array, desired: Array) -> Array:
        """Returns rewards [N] of goals [N, G]."""
        distance = np.linalg.norm(achieved - desired, axis=-1)
        return np.where(distance <= self.threshold, self.near, self.far).astype(np.float32)


_FETCH = "gymnasium_robotics.envs.fetch.fetch_env:get_base_fetch_env.<locals>.BaseFetchEnv"
_MAZE = "gymnasium_robotics.envs.maze.maze_v4:MazeEnv"
_TOYS = "music_tf.envs.toys:PointReach"


def written_in(unwrapped: Any, name: str) -> str:
    """Returns where a method is defined, as `module:Class.method`; empty without one."""
    method = getattr(unwrapped, name, None)
    function = getattr(method, "__func__", method)
    where = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return "" if method is None else ":".join(where)


def distance_reward(environment: gymnasium.Env[Any, Any]) -> DistanceReward | None:
    """Returns the reward of an environment, if its `compute_reward` is a known method."""
    unwrapped: Any = environment.unwrapped
    sparse = getattr(unwrapped, "reward_type", "sparse") == "sparse"
    threshold: Any = getattr(unwrapped, "distance_threshold", None)
    reward = {
        f"{_FETCH}.compute_reward": DistanceReward(threshold, -0.0, -1.0),
        f"{_MAZE}.compute_reward": DistanceReward(0.45, 1.0, 0.0),
        f"{_TOYS}.compute_reward": DistanceReward(0.1, 0.0, -1.0),
    }.get(written_in(unwrapped, "compute_reward"))
    # the comparison has the precision of the threshold's type
    return reward if reward and sparse and type(reward.threshold) is float else None
