"""A goal environment for tests that misbehaves when told to; `Odd.built` counts its instances."""

import gymnasium
import numpy as np
import pytest

from music_tf.errors import NumbersFault
from tests.kit.boxed import Boxed

ODD = "Odd-v0"


class Odd(Boxed):
    built = 0
    fault = ""
    at_step = 3
    low, high = -1.0, 1.0

    def __init__(self):
        type(self).built += 1
        super().__init__(2, goal=2)
        self.action_space = gymnasium.spaces.Box(self.low, self.high, (2,), np.float32)
        self.goal = np.zeros(2)
        self.leftover = 0.0

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        broken = {"reset": RuntimeError("no reset"), "ours": NumbersFault("of the environment")}
        if self.fault in broken:
            raise broken[self.fault]
        self.steps = 0
        self.position = self.np_random.uniform(-1, 1, 2)
        self.position += self.leftover * (self.fault == "leftover")
        self.goal = np.ones(2)
        return self.observe() if self.fault == "reset alone" else (self.observe(), {})

    def step(self, action):
        self.steps += 1
        self.leftover += 0.1
        self.position = self.position + action
        observation = self.observe()
        reward = float(self.compute_reward(observation["achieved_goal"], self.goal, {}))
        if self.steps == self.at_step:
            observation, reward = self.misbehave(observation, reward)
        if self.fault == "wrong reward":
            reward -= 1.0
        told = {"no info": None, "degree": {"is_success": 0.3}}
        info = told.get(self.fault, {"is_success": reward == 0.0})
        if self.fault == "four":
            return observation, reward, False, info
        return observation, reward, False, False, info

    def misbehave(self, observation, reward):
        if self.fault == "exception":
            raise RuntimeError("the motor burns")
        if self.fault == "goal":
            self.goal = np.zeros(2)
            return self.observe(), reward
        changes = {
            "nan": {"observation": np.array([0.0, np.nan])},
            "huge": {"achieved_goal": np.array([0.0, 1e39])},
            "shape": {"achieved_goal": np.zeros(3)},
            "missing": {"desired_goal": None},
        }
        bad = observation | changes.get(self.fault, {})
        kept = {key: value for key, value in bad.items() if value is not None}
        rewards = {"reward": np.inf, "huge reward": -1e39, "huge sum": 3e38}
        return kept, rewards.get(self.fault, reward)

    def compute_reward(self, achieved_goal, desired_goal, info):
        axis = None if self.fault == "axis" else -1
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=axis) > 0.5).astype(np.float64)

    def observe(self):
        dtype = np.int64 if self.fault == "dtype" else np.float64
        return {
            "observation": self.position.astype(dtype),
            "achieved_goal": self.position.copy(),
            "desired_goal": self.goal.copy(),
        }


@pytest.fixture
def odd(monkeypatch):  # the class behind `Odd-v0`; set its attribute `fault` to make it misbehave
    gymnasium.register(id=ODD, entry_point=Odd, max_episode_steps=8)
    for name in ("built", "fault", "at_step", "low", "high"):
        monkeypatch.setattr(Odd, name, getattr(Odd, name))
    Odd.built = 0
    yield Odd
    del gymnasium.registry[ODD]
