"""Environments that end their episodes as other programs do; ids are `tests.kit.ends:...`."""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

END = 6


class Counts(Boxed):
    """Observes 100 times its seed and the number of its step; ends at `END`, as `last` says."""

    def __init__(self) -> None:
        super().__init__(2, actions=1)

    def seen(self):
        return np.array([100.0 * self.seed, self.steps])

    def reset(self, *, seed=None, options=None):
        self.seed = (seed or 0) % 1000
        return super().reset(seed=seed)

    def begin(self):
        self.steps = 0

    def step(self, action):
        self.steps += 1
        seen = self.seen()
        if self.steps < END:
            return seen, 1.0, False, False, {"is_success": False}
        return self.last(seen)

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
