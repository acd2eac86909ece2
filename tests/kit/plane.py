"""A point in the plane, whose second axis may be slow and whose actions may be a disc."""

from typing import Any

import gymnasium
import numpy as np

STEPS = 50
_EDGE = 50.0


class Plane(gymnasium.Env[Any, Any]):
    """Every episode starts at 0; an action is the step along each axis."""

    def __init__(self, slow=1.0, disc=False):
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-_EDGE, _EDGE, (2,), np.float64)
        self._unit, self._disc = np.array([1.0, slow]), disc

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place = np.zeros(2)
        return self._place.copy(), {}

    def step(self, action):
        step = np.asarray(action, np.float64)
        if self._disc:
            step = step / max(1.0, float(np.linalg.norm(step)))
        self._place = np.clip(self._place + step * self._unit, -_EDGE, _EDGE)
        return self._place.copy(), 0.0, False, False, {}


gymnasium.register("Plane-v0", entry_point=Plane, max_episode_steps=STEPS)
