"""Environments that end their episodes as other programs do; ids are `tests.kit.ends:...`."""

from typing import Any

import gymnasium
import numpy as np

END = 6


class Counts(gymnasium.Env[Any, Any]):
    """Observes 100 times its seed and the number of its step; ends at `END`, as `last` says."""

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def seen(self):
        return np.array([100.0 * self.seed, self.steps])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.steps = (seed or 0) % 1000, 0
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        seen = self.seen()
        if self.steps < END:
            return seen, 1.0, False, False, {"is_success": False}
        return self.last(seen)

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

    def last(self, seen):
        return seen, 1.0, True, False, {"is_success": False}


class FinalObs(Counts):  # resets itself in its last step, as vectorised simulators do
    def last(self, seen):
        first, info = self.reset(seed=7)
        return first, 1.0, False, True, {**info, "final_obs": seen, "final_info": {"success": True}}


class FinalObservation(Counts):  # does so with the older name, without an `info` of its own
    def last(self, seen):
        first, info = self.reset(seed=7)
        return first, 1.0, True, False, {**info, "final_observation": seen, "success": True}


class OldLimit(Counts):  # says that its time is over as Gym did
    def last(self, seen):
        return seen, 1.0, True, False, {"TimeLimit.truncated": True}


class OldEnd(Counts):  # says so too where the task is over
    def last(self, seen):
        return seen, 1.0, True, False, {"TimeLimit.truncated": False}


class Varies(Counts):  # ends earlier where its seed is larger
    def step(self, action):
        self.steps += 1
        return self.seen(), 1.0, self.steps > END - self.seed, False, {}


class Bandit(Counts):  # is over with its first step
    def step(self, action):
        return self.last(self.seen())


for kind in (Counts, FinalObs, FinalObservation, OldLimit, OldEnd, Varies, Bandit):
    gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=30)
