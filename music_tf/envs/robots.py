"""Robots of Gymnasium on MuJoCo with columns for skills, goals, walls, or a broken joint."""

import math
from typing import Any, ClassVar

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv

from music_tf.errors import UsageError
from music_tf.types import Floats

_PLANE = {
    "include_cfrc_ext_in_observation": False,
    "exclude_current_positions_from_observation": False,
}


class BrokenJoint(gymnasium.ActionWrapper[Any, Any, Any]):
    """Sets the action of one joint to 0, as if the joint had no motor."""

    def __init__(self, environment: gymnasium.Env[Any, Any], joint: int) -> None:
        super().__init__(environment)
        count = (environment.action_space.shape or (0,))[0]
        if not (type(joint) is int and 0 <= joint < count):
            raise UsageError(
                f"env.kwargs: broken_joint: expected a joint from 0 to {count - 1}, or null for "
                f"none, got {joint!r:.80}"
            )
        self._joint = joint

    def action(self, action: Any) -> Any:
        weak = np.array(action)
        weak[self._joint] = 0.0
        return weak


class AntGoals(AntEnv):
    """An ant that has to walk to a place in the plane.

    Observation: that of `ant`, then x and y from the torso to the goal. Goals lie on a circle of
    4 metres around the start. Reward: decrease of the distance in a step, in metres, so that the
    return is at most 4. An episode ends when the ant falls.
    """

    radius = 4.0
    observation_space: Any

    def __init__(self, **options: Any) -> None:
        self._goal = np.zeros(2)
        super().__init__(**{**_PLANE, **options})
        size = int(np.prod(self.observation_space.shape or ())) + 2
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def reset_model(self) -> Floats:
        super().reset_model()
        angle = self.np_random.uniform(-np.pi, np.pi)
        self._goal = self.radius * np.array([np.cos(angle), np.sin(angle)])
        return self._get_obs()

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        before = self._distance()
        observation, _, terminated, truncated, info = super().step(action)
        after = self._distance()
        return observation, before - after, terminated, truncated, {**info, "distance": after}

    def _distance(self) -> float:
        return float(np.linalg.norm(self._goal - self.data.qpos[:2]))

    def _get_obs(self) -> Floats:
        return np.concatenate([super()._get_obs(), self._goal - self.data.qpos[:2]])


class AntBlocks(AntEnv):
    """An ant inside a ring of forty blocks, whose quarters a changing world opens one by one.

    The ring of DISk's Ant-block: overlapping spheres with a radius of 3 metres on a circle with a
    radius of 10, so that the ant comes about 7 metres far. `opened` of its four quarters are below
    the floor, counted from x towards y. Observation: that of `ant`. No episode ends with a fall.
    """

    blocks, circle, radius = 40, 10.0, 3.0
    """Number of blocks, radius of their circle, and their own radius, in metres."""
    quarters, lowered = 4, -4.0
    """Number of parts that can be open, and z of the centres of an open part."""
    changeable: ClassVar[tuple[str, ...]] = ("opened",)
    """Attributes that changes of the world may set between two episodes."""

    def __init__(self, *, opened: int = 0, **options: Any) -> None:
        super().__init__(**{"terminate_when_unhealthy": False, **_PLANE, **options})
        self.opened = opened

    @property
    def opened(self) -> int:
        """Number of open quarters of the ring; a change takes effect with the next reset."""
        return self._opened

    @opened.setter
    def opened(self, quarters: int) -> None:
        if not 0 <= quarters <= self.quarters:
            raise ValueError(f"expected 0 to {self.quarters} open quarters, got {quarters}")
        self._opened, each = quarters, self.blocks // self.quarters
        for number in range(self.blocks):
            height = self.lowered if number < quarters * each else 0.0
            self.model.body(f"block_{number}").pos[2] = height

    def _initialize_simulation(self) -> tuple[Any, Any]:
        spec = mujoco.MjSpec.from_file(self.fullpath)
        for number in range(self.blocks):
            angle = 2.0 * math.pi * number / self.blocks
            place = (self.circle * math.cos(angle), self.circle * math.sin(angle), 0.0)
            block = spec.worldbody.add_body(name=f"block_{number}", pos=place)
            # geoms of the ant's file do not collide with it unless conaffinity is set
            block.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(self.radius, 0.0, 0.0), conaffinity=1
            )
        model = spec.compile()
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
        return model, mujoco.MjData(model)


def ant_goals(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    return _broken(AntGoals(**options), broken_joint)


def ant(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    """Makes Ant-v5 with x and y at the start of its observation and without contact forces."""
    return _broken(AntEnv(**{**_PLANE, **options}), broken_joint)


def half_cheetah(broken_joint: int | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    return _broken(HalfCheetahEnv(**options), broken_joint)


def _broken(environment: gymnasium.Env[Any, Any], joint: int | None) -> gymnasium.Env[Any, Any]:
    return environment if joint is None else BrokenJoint(environment, joint)
