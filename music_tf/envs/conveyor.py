"""FetchPush with a second block on a conveyor, in MuJoCo."""

import math
from typing import Any

import mujoco
import numpy as np

from music_tf.envs.making import import_robotics

import_robotics()
from gymnasium_robotics.envs.fetch.push import MujocoFetchPushEnv  # noqa: E402  (without notices)

_PLACE = (1.533, 0.75, 0.427)
"""Middle of the conveyor in metres, 2 mm over the far edge of the table."""
_HALF_SIZES = (0.015, 0.025, 0.025)
_REACH = 0.15
"""Largest distance in metres of the middle of its path from the middle of the table."""
_SWING = 0.1
"""Amplitude of the second block in metres."""
_TURN_STEPS = 15
"""Period of its motion in steps."""
_SHAKE = 0.03
"""Amplitude in metres if it is shaken."""
_NEAR = 0.06
"""Initial distance in metres of the first block from the gripper if `near`; they do not touch."""


class WithSecondBlock(MujocoFetchPushEnv):
    """FetchPush with another block in its model."""

    initial_qpos: Any

    def _add_block(self, spec: Any) -> None:
        raise NotImplementedError

    def _initialize_simulation(self) -> None:
        spec = mujoco.MjSpec.from_file(self.fullpath)
        self._add_block(spec)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._model_names = self._utils.MujocoModelNames(self.model)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = self.width, self.height
        self._env_setup(initial_qpos=self.initial_qpos)
        self.initial_time = self.data.time
        self.initial_qpos, self.initial_qvel = self.data.qpos.copy(), self.data.qvel.copy()


class FetchPushConveyor(WithSecondBlock):
    """FetchPush with a second block that a conveyor carries to and fro along the far edge.

    Observation: the 25 columns of FetchPush; x, y and z of the second block; metres that it moves
    along y in a step. The seed determines where it begins. It is a body of the simulator with a
    prescribed velocity, so it pushes whatever it meets; blocks and goals are out of its way.

    A robot can follow the periodic motion. With `shakes`, the second block moves in every step to a
    random place within 3 cm, which a robot cannot follow. `near` places the first block beside the
    gripper, so that random actions often move it.
    """

    _middle = 0.0
    _angle = 0.0

    def __init__(self, *, shakes: bool = False, near: bool = False, **options: Any) -> None:
        self._shakes, self._near = shakes, near
        super().__init__(**options)

    def _add_block(self, spec: Any) -> None:
        block = spec.worldbody.add_body(name="object1", pos=_PLACE)
        block.add_joint(name="object1:joint", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=(0, 1, 0))
        block.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=_HALF_SIZES, mass=2.0)

    def _initialize_simulation(self) -> None:
        super()._initialize_simulation()
        joint = self.model.joint("object1:joint")
        self._way, self._speed = int(joint.qposadr[0]), int(joint.dofadr[0])

    def _reset_sim(self) -> bool:
        """Places the first block as FetchPush does, then the second one at a random phase."""
        placed: bool = super()._reset_sim()
        middle, turn = self.np_random.uniform(-1.0, 1.0, 2).tolist()
        self._middle, self._angle = _REACH * middle, math.pi * turn
        if self._near:
            side = math.pi * float(self.np_random.uniform(-1.0, 1.0))
            place = self.data.joint("object0:joint").qpos
            place[:2] = self.initial_gripper_xpos[:2]
            place[:2] += _NEAR * np.array([math.cos(side), math.sin(side)])
        self.data.qpos[self._way] = self._wanted()
        self._drive()
        mujoco.mj_forward(self.model, self.data)
        return placed

    def _mujoco_step(self, action: Any) -> None:
        """Gives the second block the velocity that leads to its next place."""
        if self._shakes:
            self._angle = math.asin(float(self.np_random.uniform(-1.0, 1.0)))
        else:
            self._angle += 2.0 * math.pi / _TURN_STEPS
        self._drive()
        super()._mujoco_step(action)

    def _wanted(self) -> float:
        return self._middle + (_SHAKE if self._shakes else _SWING) * math.sin(self._angle)

    def _drive(self) -> None:
        missing = self._wanted() - self.data.qpos[self._way]
        self.data.qvel[self._speed] = missing / self.dt

    def _get_obs(self) -> dict[str, Any]:
        observed: dict[str, Any] = super()._get_obs()
        second = self.data.body("object1").xpos
        moved = self.data.qvel[self._speed] * self.dt
        return observed | {"observation": np.array([*observed["observation"], *second, moved])}
