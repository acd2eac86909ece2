"""What environments of tests have in common: their spaces, a reset by its seed, a picture."""

from typing import Any

import gymnasium
import numpy as np

KEYS = ("observation", "achieved_goal", "desired_goal")


def unbounded(size):
    return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)


class Boxed(gymnasium.Env[Any, Any]):
    """Observes `size` numbers, and `goal` further ones as goals; takes `actions` in [-1, 1].

    A subclass has `begin`, which begins an episode, and `seen`, which returns what is observed.
    """

    def __init__(self, size, actions=2, goal=0):
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float32)
        self.observation_space = unbounded(size)
        if goal:
            parts = dict(zip(KEYS, map(unbounded, (size, goal, goal)), strict=True))
            self.observation_space = gymnasium.spaces.Dict(parts)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.begin()
        return self.seen(), {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)
