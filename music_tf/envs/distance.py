"""Task rewards that say only whether a goal is near, which a device can compute too."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from music_tf.types import Array


class DistanceReward(NamedTuple):
    """What each step pays for the distance |achieved - desired| of its goals."""

    threshold: float
    """Largest distance that counts as near."""
    near: float
    far: float
    ends: bool = False
    """Whether an episode ends where the goal is near."""

    def __call__(self, achieved: Array, desired: Array) -> Array:
        """Returns rewards [N] of goals [N, G]."""
        distance = np.linalg.norm(achieved - desired, axis=-1)
        return np.where(distance <= self.threshold, self.near, self.far).astype(np.float32)


_FETCH = "gymnasium_robotics.envs.fetch.fetch_env:get_base_fetch_env.<locals>.BaseFetchEnv"
_MAZE = "gymnasium_robotics.envs.maze.maze_v4:MazeEnv"
_TOYS = "music_tf.envs.toys:PointReach"


def written_in(unwrapped: Any, name: str) -> str:
    """Returns where a method was written, as `module:Class.method`; empty where there is none."""
    method = getattr(unwrapped, name, None)
    function = getattr(method, "__func__", method)
    where = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return "" if method is None else ":".join(where)


def distance_reward(environment: gymnasium.Env[Any, Any]) -> DistanceReward | None:
    """Returns the reward that an environment has under any goal; None where nobody knows it.

    What counts is where its `compute_reward` was written.
    """
    unwrapped: Any = environment.unwrapped
    sparse = getattr(unwrapped, "reward_type", "sparse") == "sparse"
    threshold: Any = getattr(unwrapped, "distance_threshold", None)
    known = {
        f"{_FETCH}.compute_reward": DistanceReward(threshold, -0.0, -1.0),
        f"{_MAZE}.compute_reward": DistanceReward(0.45, 1.0, 0.0),
        f"{_TOYS}.compute_reward": DistanceReward(0.1, 0.0, -1.0),
    }.get(written_in(unwrapped, "compute_reward"))
    # a threshold of another type would be compared in another precision
    return known if known and sparse and type(known.threshold) is float else None
