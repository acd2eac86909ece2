"""Goal environments that go wrong in one way each: `tests.faults.faulty:Faulty/WAY-v0`."""

import time

import gymnasium
import numpy as np

from music_tf.envs.toys import PointReach

AT_STEP = 3
WAYS = ("raises", "raises-once", "hangs", "shape", "missing", "nan-once", "one-step")


class Faulty(PointReach):
    spoiled = False

    def __init__(self, way, render_mode=None):
        super().__init__(render_mode=render_mode)
        self._way = way
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        if self._way == "one-step":
            return observation, reward, True, truncated, info
        if self._steps == AT_STEP and not (self._way.endswith("once") and Faulty.spoiled):
            Faulty.spoiled = True
            self._go_wrong(observation)
        return observation, reward, terminated, truncated, info

    def _go_wrong(self, observation):
        if self._way == "hangs":
            time.sleep(1e6)
        elif self._way == "shape":
            observation["achieved_goal"] = np.zeros(2)
        elif self._way == "missing":
            del observation["desired_goal"]
        elif self._way == "nan-once":
            observation["observation"][0] = np.nan
        else:
            raise RuntimeError("the motor burns")


for name in WAYS:
    gymnasium.register(
        f"Faulty/{name}-v0", f"{__name__}:Faulty", max_episode_steps=10, kwargs={"way": name}
    )
