"""Robots of Gymnasium on MuJoCo with columns for skills, goals in the plane, or a broken joint."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv

from music_tf.errors import UsageError

Floats = npt.NDArray[np.float64]

_PLANE = {
    "include_cfrc_ext_in_observation": False,
    "exclude_current_positions_from_observation": False,
}


class BrokenJoint(gymnasium.ActionWrapper[Any, Any, Any]):
    """Takes the force from one joint: what is asked of it becomes 0."""

    def __init__(self, environment: gymnasium.Env[Any, Any], joint: int) -> None:
        """Takes the environment, and which number of an action has no effect.

        Raises:
            UsageError: There is no such joint.
        """
        super().__init__(environment)
        count = (environment.action_space.shape or (0,))[0]
        if not (type(joint) is int and 0 <= joint < count):
            raise UsageError(
                f"env.kwargs: broken_joint: expected a joint from 0 to {count - 1}, or null for "
                f"none, got {joint!r:.80}"
            )
        self._joint = joint

    def action(self, action: Any) -> Any:
        """Returns the action without what is asked of the joint."""
        weak = np.array(action)
        weak[self._joint] = 0.0
        return weak


class AntGoals(AntEnv):
    """An ant that shall walk to a place in the plane.

    Observation: that of `ant`, then x and y from the torso to the goal. Goals lie on a circle of
    4 metres around the start. Reward: metres that a step has come nearer, so that the return is
    the distance covered, at most 4; it ends when the ant falls.
    """

    radius = 4.0
    observation_space: Any

    def __init__(self, **options: Any) -> None:
        self._goal = np.zeros(2)
        super().__init__(**{**_PLANE, **options})
        size = int(np.prod(self.observation_space.shape or ())) + 2
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def reset_model(self) -> Floats:
        """Places ant and goal."""
        super().reset_model()
        angle = self.np_random.uniform(-np.pi, np.pi)
        self._goal = self.radius * np.array([np.cos(angle), np.sin(angle)])
        return self._get_obs()

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Walks, and pays what the goal has come nearer."""
        before = self._distance()
        observation, _, terminated, truncated, info = super().step(action)
        after = self._distance()
        return observation, before - after, terminated, truncated, {**info, "distance": after}

    def _distance(self) -> float:
        return float(np.linalg.norm(self._goal - self.data.qpos[:2]))

    def _get_obs(self) -> Floats:
        return np.concatenate([super()._get_obs(), self._goal - self.data.qpos[:2]])


def ant_goals(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Makes `AntGoals`."""
    return _broken(AntGoals(**options), broken_joint)


def ant(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Makes Ant-v5 with x and y in front of its observation and without contact forces."""
    return _broken(AntEnv(**{**_PLANE, **options}), broken_joint)


def half_cheetah(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Makes HalfCheetah-v5."""
    return _broken(HalfCheetahEnv(**options), broken_joint)


def _broken(environment: gymnasium.Env[Any, Any], joint: int | None) -> gymnasium.Env[Any, Any]:
    return environment if joint is None else BrokenJoint(environment, joint)
