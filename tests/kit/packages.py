"""Stand-ins for packages of tasks, as far as the wrappers of docs/environments.md use them.

The hand is the point that pushes a disc; columns and names are those of the packages.
"""

import types

import numpy as np

from music_tf.envs.toys import PointPush, Square

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

    def close(self):
        self.inner.close()


class Suite:  # dm_control's: a time step holds parts of an observation, and ends at a time limit
    def load(self, domain, task):
        return SuiteRobot({"cheetah": 3, "swimmer": 2}[domain])


class SuiteRobot:
    """A point whose place stands in the simulator alone; its number is drawn by the task."""

    def __init__(self, axes):
        self.axes, self.inner = axes, Square()
        self.task = types.SimpleNamespace(random=np.random.RandomState(0))
        self.physics = types.SimpleNamespace(render=lambda height, width, camera_id: np.zeros(3))

    def action_spec(self):
        return types.SimpleNamespace(minimum=-np.ones(2), maximum=np.ones(2))

    def observation_spec(self):
        return {"turned": np.zeros(2), "number": np.zeros(())}

    def close(self):
        self.inner.close()

    def reset(self):
        self.number, self.steps = self.task.random.uniform(), 0
        return self.now(*self.inner.reset()[:1])

    def step(self, action):
        self.steps += 1
        return self.now(self.inner.step(action)[0])

    def now(self, point):
        torso = np.array([point[0], 9.0, point[1]]) if self.axes > len(point) else point
        places = {"xpos": {"torso": torso}, "subtree_com": {"head": torso}}
        self.physics.named = types.SimpleNamespace(data=types.SimpleNamespace(**places))
        return types.SimpleNamespace(
            observation={"turned": point[::-1] / 10.0, "number": self.number},
            reward=None if self.steps == 0 else 0.5,
            discount=1.0,
            last=lambda: self.steps == 2 * LONGEST,
        )


MODULES = {
    "dm_control": {"suite": Suite()},
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
