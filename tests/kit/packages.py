"""Stand-ins for packages of tasks, as far as the wrappers of docs/environments.md use them.

The hand is the point that pushes a disc; columns and names are those of the packages.
"""

import types

import numpy as np

from music_tf.envs.toys import PointPush

LONGEST = 500
FLAT = np.array([0.0, 0.0, 0.0, 1.0])


class PushV3:
    """Meta-World's: places come from a task that was set before, a vector [39] is observed."""

    action_space = PointPush().action_space

    def __init__(self, render_mode, camera_name):
        assert (render_mode, camera_name) == ("rgb_array", "corner2")
        self.inner, self.task = PointPush(), None

    def set_task(self, task):
        self.task = task

    def reset(self, seed=None):
        observation, _ = self.inner.reset(seed=self.task)
        self.steps, self.before = 0, None
        return self.state(observation), {}

    def step(self, action):
        assert self.steps < LONGEST
        self.steps += 1
        observation, *_ = self.inner.step(action)
        return self.state(observation), 7.0, False, self.steps == LONGEST, {"success": 0.0}

    def state(self, observation):
        point, disc = observation["observation"][:3], observation["observation"][3:6]
        now = np.concatenate([point, [1.0], disc, FLAT, np.zeros(7)])
        before = now if self.before is None else self.before
        self.before = now
        return np.concatenate([now, before, observation["desired_goal"]])

    def render(self):
        return self.inner.render()

    def close(self):
        self.inner.close()


class MT1:  # Meta-World's benchmark of one task in fifty places
    def __init__(self, name, seed):
        self.train_classes, self.train_tasks = {name: PushV3}, list(range(seed, seed + 50))


class CubeEnv:  # OGBench's: what it knows of cube, goal and arm stands in `info`
    def __init__(self, kind, mode, terminate_at_goal, width, height):
        assert (kind, mode, terminate_at_goal) == ("single", "data_collection", False)
        self.inner = PointPush()

    def reset(self, seed=None):
        observation, _ = self.inner.reset(seed=seed)
        return None, self.info(observation)

    def step(self, action):
        assert action.shape == (5,)
        observation, *_ = self.inner.step(action[[0, 1, 4]])
        return None, 0.0, False, False, self.info(observation)

    def info(self, observation):
        return {
            "proprio/effector_pos": observation["observation"][:3],
            "proprio/gripper_opening": np.zeros(1),
            "proprio/gripper_contact": np.zeros(1),
            "proprio/joint_pos": np.zeros(6),
            "proprio/joint_vel": np.zeros(6),
            "privileged/block_0_pos": observation["achieved_goal"],
            "privileged/block_0_quat": FLAT,
            "privileged/target_block_pos": observation["desired_goal"],
        }

    def render(self):
        return self.inner.render()

    def close(self):
        self.inner.close()


MODULES = {
    "metaworld": {"MT1": MT1},
    "ogbench": {},
    "ogbench.manipspace": {},
    "ogbench.manipspace.envs": {},
    "ogbench.manipspace.envs.cube_env": {"CubeEnv": CubeEnv},
}


def stand_in(name):  # the module of this name, with what the wrappers use of it
    module = types.ModuleType(name)
    vars(module).update(MODULES[name])
    return module
