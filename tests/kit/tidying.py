"""Somebody else's goal environment, as it would come from a package: nothing here knows of it.

It observes (disc - point: 0, 1; disc: 2, 3, 4; point: 5, 6, 7), keeps its goal where nobody can set
it, and its reward reads how heavy the disc was from `info`.
"""

from typing import Any

import gymnasium
import numpy as np

from music_tf.envs.toys import PointPush

TIDYING = "tests.kit.tidying:Tidying-v0"
COLUMNS = {
    "agent": (5, 6, 7),
    "surrounding": (2, 3, 4),
    "object": (2, 3, 4),
    "gripper": (5, 6, 7),
    "support": (-1.0, -1.0, 1.0, 1.0, 0.0),
}
"""What its user says of it."""
TYPED = [w for name, own in COLUMNS.items() for w in (f"--world.{name}", *(f"{n:g}" for n in own))]
_ORDER = [6, 7, 3, 4, 5, 0, 1, 2]


class Tidying(gymnasium.Env[Any, Any]):
    metadata = PointPush.metadata

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.inner = PointPush(render_mode=render_mode)
        self.action_space = self.inner.action_space
        self.observation_space = self.inner.observation_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observation, _ = self.inner.reset(seed=seed)
        self.steps = 0
        return self.rearranged(observation), {}

    def step(self, action):
        observation, _, terminated, truncated, info = self.inner.step(action)
        self.steps += 1
        info |= {"weight": 1.0 + self.steps, "colour": "red"}
        reward = self.compute_reward(
            observation["achieved_goal"], observation["desired_goal"], info
        )
        return self.rearranged(observation), reward, terminated, truncated, info

    def compute_reward(self, achieved, desired, info):
        if np.linalg.norm(achieved - desired) < 0.1:
            return 0.0
        return -info["weight"]

    def render(self):
        return self.inner.render()

    def rearranged(self, observation):
        return observation | {"observation": observation["observation"][_ORDER]}


def disc(environment):  # where the disc is, read from the simulator
    return environment.inner._observe()["achieved_goal"]


def pair(environment):  # numbers of two axes
    return np.zeros((2, 2))


def broken(environment):  # reads what is not there
    return environment.sensors


gymnasium.register("Tidying-v0", Tidying, max_episode_steps=30)
