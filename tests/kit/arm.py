"""Somebody's arm of two links in the plane whose tip pushes a disc, with goals and without.

It observes cosine and sine of both joints (0 to 3), its tip (4, 5) and the disc (6, 7).
"""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

ARM, ARM_WITH_GOALS = "tests.kit.arm:Arm-v0", "tests.kit.arm:ArmWithGoals-v0"
STEPS = 50
TIP, DISC = (4, 5), (6, 7)
_LINK, _REACH, _NEAR = 0.5, 0.06, 0.05


class Arm(Boxed):
    def __init__(self):
        super().__init__(8)
        self.observation_space = gymnasium.spaces.Box(-2.0, 2.0, (8,), np.float32)

    def tip(self):
        angles = np.cumsum(self.joints)
        return _LINK * np.array([np.cos(angles).sum(), np.sin(angles).sum()])

    def seen(self):
        turned = [both for angle in self.joints for both in (np.cos(angle), np.sin(angle))]
        return np.concatenate([turned, self.tip(), self.disc]).astype(np.float32)

    def begin(self):
        self.joints = self.np_random.uniform([-0.5, 0.8], [0.5, 1.6])
        self.disc = self.tip() + self.beside(0.08, 0.2)

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
        return self.seen(), 0.0, False, False, {}


class ArmWithGoals(Arm):
    def __init__(self):
        super().__init__()
        place = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(
            {"observation": self.observation_space, "achieved_goal": place, "desired_goal": place}
        )

    def begin(self):
        super().begin()
        self.goal = (self.disc + self.beside(0.0, 0.25)).astype(np.float32)

    def seen(self):
        observation = super().seen()
        goals = {"achieved_goal": observation[6:8].copy(), "desired_goal": self.goal.copy()}
        return {"observation": observation, **goals}

    def step(self, action):
        seen, *_ = super().step(action)
        reward = float(self.compute_reward(seen["achieved_goal"], self.goal, {}))
        return seen, reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(achieved - desired, axis=-1) > _NEAR).astype(np.float32)


gymnasium.register("Arm-v0", Arm, max_episode_steps=STEPS)
gymnasium.register("ArmWithGoals-v0", ArmWithGoals, max_episode_steps=STEPS)
