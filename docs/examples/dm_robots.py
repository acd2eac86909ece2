"""Cheetah and swimmer of dm_control's suite, on which DISk was tried, as own environments."""

import gymnasium
import numpy as np
from dm_control import suite
from gymnasium import spaces

import music_tf

ROBOTS = {  # domain and task, and the array, body and axes of its place
    "DmCheetah-v0": ("cheetah", "run", "xpos", "torso", [0, 2]),
    "DmSwimmer-v0": ("swimmer", "swimmer6", "subtree_com", "head", [0, 1]),
}


class Robot(gymnasium.Env):
    """Observes what the suite shows, as one vector."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 33}

    def __init__(self, domain, task, array, body, axes, render_mode=None):
        self.render_mode, self.where = render_mode, (array, body, axes)
        self.inner = suite.load(domain, task)
        actions, shown = self.inner.action_spec(), self.inner.observation_spec().values()
        self.action_space = spaces.Box(actions.minimum, actions.maximum, dtype=np.float64)
        size = sum(int(np.prod(part.shape)) for part in shown)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.inner.task.random.seed(seed)
        return self.observed(self.inner.reset()), {}

    def step(self, action):
        now = self.inner.step(action)
        terminated = now.last() and now.discount == 0.0  # else its time limit has ended it
        truncated = now.last() and not terminated
        return self.observed(now), float(now.reward), terminated, truncated, {}

    def observed(self, now):
        return np.concatenate([np.ravel(part) for part in now.observation.values()])

    def render(self):
        return self.inner.physics.render(480, 640, camera_id=0)

    def close(self):
        self.inner.close()


def place(robot):
    """Returns where a robot is: x and z of the cheetah, x and y of the swimmer."""
    array, body, axes = robot.where
    return getattr(robot.inner.physics.named.data, array)[body][axes]


for name, how in ROBOTS.items():
    names = ("domain", "task", "array", "body", "axes")
    kwargs = dict(zip(names, how, strict=True))
    gymnasium.register(name, Robot, max_episode_steps=1000, kwargs=kwargs)
    music_tf.register_world(name, music_tf.World(descriptor=["dm_robots:place"]))
