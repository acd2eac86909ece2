"""FetchPush with two free blocks and a goal for each, in MuJoCo."""

import math
from typing import Any

import mujoco
import numpy as np

from music_tf.envs.conveyor import WithSecondBlock
from music_tf.envs.fetch import euler
from music_tf.types import Floats

_PLACE = (1.25, 0.97, 0.425)
"""Of the second block before the first reset, in metres."""
_APART = 0.1
"""Least distance in metres of a block from gripper and other block, and of goals, at reset."""
_CHANCE, _SPEED = 0.1, 0.7
"""Of a push in a step, and its velocity in metres per second."""
_MOVED = {"first": (0,), "second": (1,), "both": (0, 1)}
_GREEN = (0.1, 0.7, 0.2, 1.0)


class FetchPushTwo(WithSecondBlock):
    """FetchPush with a second block like the first, and a goal for each.

    Observation: the 25 columns of FetchPush; of the second block, in the same form, position,
    position relative to the gripper, rotation, velocity relative to the gripper, and angular
    velocity. Goals are both places, [6]; the reward is 0 while both blocks are within 5 cm, else
    -1. Blocks begin at least 10 cm apart, and so do goals.

    With `moves` `first` or `second`, the other block's goal is the place where it begins. With
    `pushed`, the second block is pushed about 2.5 cm in a random direction every tenth step or so.
    """

    def __init__(self, *, moves: str = "both", pushed: bool = False, **options: Any) -> None:
        if moves not in _MOVED:
            raise ValueError(f"moves: expected {', '.join(_MOVED)}, got {moves!r}")
        self._moves, self._pushed = _MOVED[moves], pushed
        super().__init__(**options)

    def _add_block(self, spec: Any) -> None:
        block = spec.worldbody.add_body(name="object1", pos=_PLACE)
        block.add_freejoint(name="object1:joint")
        like = spec.geom("object0")
        block.add_geom(type=like.type, size=like.size, mass=like.mass, rgba=_GREEN)
        block.add_site(name="object1", size=spec.site("object0").size)
        goal = spec.site("target0")  # away from its body, else MuJoCo keeps it there
        spec.body("floor0").add_site(name="target1", pos=goal.pos, size=goal.size, rgba=_GREEN)

    def _reset_sim(self) -> bool:
        """Places the first block as FetchPush does, then the second one away from it."""
        placed: bool = super()._reset_sim()
        first, second = (self.data.joint(f"object{block}:joint").qpos for block in (0, 1))
        gripper, second[:] = self.initial_gripper_xpos[:2], first
        while min(math.dist(second[:2], first[:2]), math.dist(second[:2], gripper)) < _APART:
            second[:2] = gripper + self.np_random.uniform(-self.obj_range, self.obj_range, 2)
        mujoco.mj_forward(self.model, self.data)
        return placed

    def _sample_goal(self) -> Floats:
        """Draws goals as FetchPush does, each away from the other block's."""
        goals = np.array([self.data.site(f"object{block}").xpos for block in (0, 1)])
        for block in self._moves:
            goals[block] = super()._sample_goal()
            while math.dist(*goals) < _APART:
                goals[block] = super()._sample_goal()
        return goals.ravel()

    def _mujoco_step(self, action: Any) -> None:
        if self._pushed and self.np_random.uniform() < _CHANCE:
            way = self.np_random.standard_normal(2)
            self.data.joint("object1:joint").qvel[:2] = _SPEED * way / np.linalg.norm(way)
        super()._mujoco_step(action)

    def _get_obs(self) -> dict[str, Any]:
        observed: dict[str, Any] = super()._get_obs()
        seen, utils, now = observed["observation"], self._utils, (self.model, self.data)
        place = utils.get_site_xpos(*now, "object1")
        turned = euler(self.data.site("object1").xmat)
        speed = utils.get_site_xvelp(*now, "object1") * self.dt - seen[20:23]
        turning = utils.get_site_xvelr(*now, "object1") * self.dt
        columns = np.concatenate([seen, place, place - seen[:3], turned, speed, turning])
        places = np.concatenate([observed["achieved_goal"], place])
        return observed | {"observation": columns, "achieved_goal": places}

    def compute_reward(self, achieved_goal: Floats, goal: Floats, info: Any) -> Any:
        """Returns the lower reward of both blocks, [...], for goals [..., 6]."""
        return super().compute_reward(_by_block(achieved_goal), _by_block(goal), info).min(axis=-1)

    def _is_success(self, achieved_goal: Floats, desired_goal: Floats) -> Any:
        return super()._is_success(_by_block(achieved_goal), _by_block(desired_goal)).min(axis=-1)

    def _render_callback(self) -> None:
        for block, goal in enumerate(_by_block(self.goal)):
            self.model.site(f"target{block}").pos = goal - self.model.body("floor0").pos
        mujoco.mj_forward(self.model, self.data)


def _by_block(goals: Floats) -> Floats:
    """Returns goals [..., 6] as [..., 2, 3]."""
    return goals.reshape(*goals.shape[:-1], 2, 3)
