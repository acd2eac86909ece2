"""A fast path for the Fetch robot, bit-equal to gymnasium-robotics.

`gymnasium.make` steps through wrappers, looks names up again at every step and copies each
observation several times, which takes as long as the physics. This module reads the same quantities
by index, in the same order of operations, so that every number is equal to the last bit.
"""

import math
from typing import Any

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt

from music_tf.envs.hidden_goal import HiddenGoal
from music_tf.envs.member import Outcome, PlainMember, Row, show_goal
from music_tf.envs.registry import layers_of
from music_tf.types import Floats

_STEP_LENGTH = 0.05
"""Metres that the gripper is asked to move for an action of 1."""
_TURN = np.array([1.0, 0.0, 1.0, 0.0])
"""Added to the orientation of the gripper's mocap body, which makes it point down."""
_UPRIGHT = 4 * np.finfo(np.float64).eps
"""Below this cosine the Euler angles of the object are degenerate."""
_MODULES = "gymnasium_robotics."
_HIDDEN = f"{HiddenGoal.__module__}:{HiddenGoal.__name__}"


def fetch_member(environment: gymnasium.Env[Any, Any]) -> "FetchMember | None":
    """Returns the fast path for a Fetch task; None for any other or a changed environment."""
    unwrapped = environment.unwrapped
    module, name = type(unwrapped).__module__, type(unwrapped).__name__
    is_fetch = module.startswith(f"{_MODULES}envs.fetch.") and name.startswith("MujocoFetch")
    if not is_fetch or _welded_bodies(getattr(unwrapped, "model", None)) is None:
        return None
    layers = list(map(type, layers_of(environment)))
    is_changed = any(map(callable, vars(unwrapped).values())) or _is_patched(type(unwrapped))
    if is_changed or layers.count(gymnasium.wrappers.TimeLimit) > 1:
        return None
    wrappers = environment.spec.additional_wrappers if environment.spec else ()
    if [wrapper.entry_point for wrapper in wrappers] == [_HIDDEN]:
        return HiddenFetchMember(environment)
    return None if wrappers else FetchMember(environment)


def _is_patched(kind: type) -> bool:
    """Whether a method of a class of gymnasium-robotics, or of a base, was written elsewhere."""
    bases = (base for base in kind.__mro__ if base.__module__.startswith(_MODULES))
    methods = filter(callable, (method for base in bases for method in vars(base).values()))
    written = (getattr(method, "__globals__", {}).get("__name__", "") for method in methods)
    return not all(name.startswith(_MODULES) for name in written)


class FetchMember(PlainMember):
    """Steps one Fetch task, and gives bit for bit what `gymnasium.make(id)` gives."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        unwrapped = self._unwrapped
        model, data = unwrapped.model, unwrapped.data
        self._model, self._data = model, data
        self._limit = environment.spec.max_episode_steps if environment.spec else None
        self._elapsed = 0
        self._goal = [0.0, 0.0, 0.0]
        self._has_object = bool(unwrapped.has_object)
        self._seconds = unwrapped.n_substeps * model.opt.timestep

        fingers = [model.joint(f"robot0:{side}_gripper_finger_joint").id for side in ("r", "l")]
        self._finger_joints = [int(model.jnt_qposadr[joint]) for joint in fingers]
        self._finger_speeds = [int(model.jnt_dofadr[joint]) for joint in fingers]
        self._grip_site = model.site("robot0:grip").id
        self._object_site = model.site("object0").id if self._has_object else -1
        self._actuators = [
            (
                bool(model.actuator_biastype[actuator] != 0),
                int(model.jnt_qposadr[model.actuator_trnid[actuator, 0]]),
            )
            for actuator in range(model.nu)
        ]

        # Views into the simulator's arrays, which never move.
        self._qpos, self._qvel, self._ctrl = data.qpos, data.qvel, data.ctrl
        mocap, body = _welded_bodies(model) or (0, 0)
        self._mocap_pos, self._mocap_quat = data.mocap_pos[mocap], data.mocap_quat[mocap]
        self._gripper_pos, self._gripper_quat = data.xpos[body], data.xquat[body]
        self._grip = data.site_xpos[self._grip_site]
        self._object = data.site_xpos[self._object_site]
        self._object_turn = data.site_xmat[self._object_site]
        self._linear = np.zeros((3, model.nv))
        self._angular = np.zeros((3, model.nv))
        self._speeds = np.zeros((3, 3))

    def reset(self, seed: int, goal: Floats | None, row: Row) -> None:
        """Starts the episode of this seed, as the class does, without reading the state."""
        unwrapped = self._unwrapped
        gymnasium.Env.reset(unwrapped, seed=seed)
        while not unwrapped._reset_sim():
            pass
        unwrapped.goal = unwrapped._sample_goal().copy()
        if goal is not None:
            show_goal(unwrapped, goal)
        self._goal = unwrapped.goal.tolist()
        self._elapsed = 0
        self._write(row)

    def step(self, action: npt.NDArray[np.float32], row: Row) -> Outcome:
        unwrapped = self._unwrapped
        if self._actuators:
            grip = 0.0 if unwrapped.block_gripper else float(action[3])
            for actuator, (relative, joint) in enumerate(self._actuators):
                self._ctrl[actuator] = self._qpos[joint] + grip if relative else grip
        self._mocap_pos[:] = self._gripper_pos
        self._mocap_quat[:] = self._gripper_quat
        self._mocap_pos += action[:3] * _STEP_LENGTH
        self._mocap_quat += _TURN
        mujoco.mj_step(self._model, self._data, nstep=unwrapped.n_substeps)
        if unwrapped.block_gripper:
            self._qpos[self._finger_joints[0]] = 0.0
            self._qpos[self._finger_joints[1]] = 0.0
            # Before the next step, only the positions of bodies and sites are read, so that a whole
            # mj_forward is not necessary.
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
        self._write(row)
        self._elapsed += 1

        x, y, z = row.achieved_goal.tolist()
        to_x, to_y, to_z = x - self._goal[0], y - self._goal[1], z - self._goal[2]
        distance = math.sqrt(to_x * to_x + to_y * to_y + to_z * to_z)
        threshold = unwrapped.distance_threshold
        sparse = unwrapped.reward_type == "sparse"
        reward = (-1.0 if distance > threshold else -0.0) if sparse else -distance
        truncated = self._limit is not None and self._elapsed >= self._limit
        return Outcome(reward, False, truncated, distance < threshold)

    def _write(self, row: Row) -> None:
        observation, grip = row.observation, self._grip
        speed = self._site_speed(self._grip_site, None, self._speeds[0])
        observation[0:3] = grip
        fingers, speeds = (9, 20) if self._has_object else (3, 5)
        observation[speeds : speeds + 3] = speed
        for finger in range(2):
            observation[fingers + finger] = self._qpos[self._finger_joints[finger]]
            finger_speed = self._qvel[self._finger_speeds[finger]] * self._seconds
            observation[speeds + 3 + finger] = finger_speed
        if self._has_object:
            object_speed = self._site_speed(self._object_site, self._angular, self._speeds[1])
            observation[3:6] = self._object
            np.subtract(self._object, grip, out=observation[6:9])
            observation[11:14] = euler(self._object_turn)
            np.subtract(object_speed, speed, out=observation[14:17])
            turning = self._angular.dot(self._qvel, self._speeds[2])
            np.multiply(turning, self._seconds, out=observation[17:20])
        row.achieved_goal[:] = self._object if self._has_object else grip
        row.desired_goal[:] = self._goal

    def _site_speed(self, site: int, angular: Floats | None, out: Floats) -> Floats:
        """Returns metres a site moves in a step; fills `angular` with its rotational Jacobian."""
        mujoco.mj_jacSite(self._model, self._data, self._linear, angular, site)
        self._linear.dot(self._qvel, out)
        out *= self._seconds
        return out


class HiddenFetchMember(FetchMember):
    """Steps one Fetch task with a hidden goal, and gives bit for bit what `HiddenGoal` gives."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        self._aim = np.zeros(3)

    def reset(self, seed: int, goal: Floats | None, row: Row) -> None:
        """Starts the episode of this seed under the goal of the task."""
        del goal
        super().reset(seed, self.environment.get_wrapper_attr("task"), self._parts_of(row))

    def step(self, action: npt.NDArray[np.float32], row: Row) -> Outcome:
        return super().step(action, self._parts_of(row))

    def _parts_of(self, row: Row) -> Row:
        return Row(row.observation[:-3], row.observation[-3:], self._aim)


def _welded_bodies(model: Any) -> tuple[int, int] | None:
    """Returns the only mocap body, and the body welded to it; None for another layout."""
    if model is None or model.nmocap != 1:
        return None
    welds = [index for index, kind in enumerate(model.eq_type) if kind == mujoco.mjtEq.mjEQ_WELD]
    if len(welds) != 1:
        return None
    first, second = int(model.eq_obj1id[welds[0]]), int(model.eq_obj2id[welds[0]])
    if model.body_mocapid[first] != -1:
        return int(model.body_mocapid[first]), second
    return int(model.body_mocapid[second]), first


def euler(matrix: Floats) -> Floats:
    """Returns Euler angles [3] of a rotation matrix [9], by the formulas of gymnasium-robotics."""
    m00, m01, m02, m10, m11, m12, _, _, m22 = matrix.tolist()
    cosine = math.sqrt(m22 * m22 + m12 * m12)
    if cosine > _UPRIGHT:
        return -np.arctan2([m12, -m02, m01], [m22, cosine, m00])
    angles = -np.arctan2([0.0, -m02, -m10], [1.0, cosine, m11])
    angles[0] = 0.0
    return angles
