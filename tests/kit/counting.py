"""Environments without goals for tests: what they observe says which step of which seed it is."""

import gymnasium
import numpy as np

from tests.kit.boxed import KEYS, Boxed, unbounded

LIMIT = 8
BOUND = 2.0
COUNTING = "tests.kit.counting:Counting-v0"
HIDING = "tests.kit.counting:Hiding-v0"
FORGETFUL = "tests.kit.counting:Forgetful-v0"
AIMING = "tests.kit.counting:Aiming-v0"
SHARING = "tests.kit.counting:Sharing-v0"
RAISING = "tests.kit.counting:Raising-v0"
NORMALIZED = "tests.kit.counting:NormalizeObservation-v0"
NORMALIZED_REWARD = "tests.kit.counting:NormalizeReward-v0"


class Counting(Boxed):
    """Observes (seed mod 1000, step); pays the step; ends by itself where it is told to."""

    def __init__(self, end: int = 0, spoiled: int = 0, size: int = 2) -> None:
        super().__init__(size)
        self.action_space = gymnasium.spaces.Box(-BOUND, BOUND, (1,), np.float32)
        self.end, self.spoiled = end, spoiled

    def reset(self, *, seed=None, options=None):
        self.seed, self.steps = seed % 1000, 0
        return super().reset(seed=seed)

    def begin(self):
        pass

    def seen(self):
        return np.resize([self.seed, self.steps], self.observation_space.shape).astype(float)

    def step(self, action):
        self.steps += 1
        if self.steps == self.spoiled:
            raise RuntimeError("a cable snaps")
        return self.seen(), float(self.steps), self.steps == self.end, False, {}


class Hiding(Counting):
    """Has a goal of its own that nobody can set, reaches it with every step, and ends there."""

    def __init__(self) -> None:
        super().__init__(size=1)
        self.observation_space = gymnasium.spaces.Dict(dict.fromkeys(KEYS, unbounded(1)))

    def seen(self):
        here = np.array([float(self.steps)])
        return {"observation": here, "achieved_goal": here, "desired_goal": np.array([7.0])}

    def step(self, action):
        self.steps += 1
        return self.seen(), 0.0, True, False, {"is_success": True}

    def compute_reward(self, achieved, desired, info):
        return np.zeros(len(achieved))


class Forgetful(Counting):
    """Observes how often it was reset, whatever the seed: it does not repeat itself."""

    resets = -1

    def begin(self):
        self.resets += 1

    def seen(self):
        return np.full(2, float(self.resets))


class Raising(Forgetful):
    """Observes its step, and pays with each reset more: its reward alone does not repeat itself."""

    def seen(self):
        return np.full(2, float(self.steps))

    def step(self, action):
        observation, reward, *others = super().step(action)
        return observation, reward + self.resets, *others


class Aiming(Counting):
    """Observes its step and the one that it wants to be at, its `goal`, where it ends."""

    def begin(self):
        self.goal = np.ones(1)

    def seen(self):
        return np.append(float(self.steps), self.goal)

    def step(self, action):
        observation, reward, *_ = super().step(action)
        there = bool(self.steps == self.goal)
        return observation, reward, there, False, {"is_success": there}


class Sharing(Counting):
    """Adds up its actions in one place for all copies of it, as simulators without handles do."""

    world = np.zeros(1)

    def begin(self):
        self.world[:] = self.seed

    def seen(self):
        return np.array([self.world[0], self.steps])

    def step(self, action):
        self.world[:] += action
        return super().step(action)


for kind in (Counting, Hiding, Forgetful, Raising, Aiming, Sharing):
    gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=LIMIT)
for wrapper in (gymnasium.wrappers.NormalizeObservation, gymnasium.wrappers.NormalizeReward):
    gymnasium.register(
        f"{wrapper.__name__}-v0", lambda kind=wrapper: kind(Counting()), max_episode_steps=LIMIT
    )
