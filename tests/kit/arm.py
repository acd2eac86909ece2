"""Somebody's arm of two links in the plane whose tip pushes a disc, with goals and without.

It observes cosine and sine of both joints (0 to 3), its tip (4, 5) and the disc (6, 7).
"""

from typing import Any

import gymnasium
import numpy as np

ARM, ARM_WITH_GOALS = "tests.kit.arm:Arm-v0", "tests.kit.arm:ArmWithGoals-v0"
STEPS = 50
TIP, DISC = (4, 5), (6, 7)
_LINK, _REACH, _NEAR = 0.5, 0.06, 0.05


class Arm(gymnasium.Env[Any, Any]):
    def __init__(self):
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-2.0, 2.0, (8,), np.float32)

    def tip(self):
        angles = np.cumsum(self.joints)
        return _LINK * np.array([np.cos(angles).sum(), np.sin(angles).sum()])

    def observe(self):
        turned = [both for angle in self.joints for both in (np.cos(angle), np.sin(angle))]
        return np.concatenate([turned, self.tip(), self.disc]).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.joints = self.np_random.uniform([-0.5, 0.8], [0.5, 1.6])
        self.disc = self.tip() + self.beside(0.08, 0.2)
        return self.observe(), {}

    def beside(self, low, high):
        angle, far = self.np_random.uniform([-np.pi, low], [np.pi, high])
        return far * np.array([np.cos(angle), np.sin(angle)])

    def step(self, action):
        for _ in range(4):
            self.joints = self.joints + 0.02 * np.clip(action, -1.0, 1.0)
            away = self.disc - self.tip()
            distance = np.linalg.norm(away)
            if distance < _REACH:
                self.disc = self.tip() + away / max(distance, 1e-6) * _REACH
        return self.observe(), 0.0, False, False, {}

    def render(self):  # a grey picture
        return np.full((64, 64, 3), 128, np.uint8)


class ArmWithGoals(Arm):
    def __init__(self):
        super().__init__()
        place = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(
            {"observation": self.observation_space, "achieved_goal": place, "desired_goal": place}
        )

    def seen(self, observation):
        goals = {"achieved_goal": observation[6:8].copy(), "desired_goal": self.goal.copy()}
        return {"observation": observation, **goals}

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.goal = (self.disc + self.beside(0.0, 0.25)).astype(np.float32)
        return self.seen(observation), info

    def step(self, action):
        observation, *_ = super().step(action)
        seen = self.seen(observation)
        reward = float(self.compute_reward(seen["achieved_goal"], self.goal, {}))
        return seen, reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(achieved - desired, axis=-1) > _NEAR).astype(np.float32)


gymnasium.register("Arm-v0", Arm, max_episode_steps=STEPS)
gymnasium.register("ArmWithGoals-v0", ArmWithGoals, max_episode_steps=STEPS)
