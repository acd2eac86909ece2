"""A point that pushes a puck through a box with walls, if it happens to meet it."""

from typing import Any

import gymnasium
import numpy as np

STEPS = 50
_STEP, _TOUCH, _APART = 0.1, 0.15, 0.3


class Puck(gymnasium.Env[Any, Any]):
    """Observes point and puck; an action is the velocity of the point along each axis."""

    def __init__(self):
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        angle = self.np_random.uniform(-np.pi, np.pi)
        self._puck = np.zeros(2)
        self._point = _APART * np.array([np.cos(angle), np.sin(angle)])
        return np.concatenate([self._point, self._puck]), {}

    def step(self, action):
        self._point = np.clip(self._point + _STEP * np.asarray(action, np.float64), -1.0, 1.0)
        way = self._puck - self._point
        apart = float(np.linalg.norm(way))
        if 0.0 < apart < _TOUCH:
            self._puck = np.clip(self._point + way * (_TOUCH / apart), -1.0, 1.0)
        return np.concatenate([self._point, self._puck]), 0.0, False, False, {}


gymnasium.register("Puck-v0", entry_point=Puck, max_episode_steps=STEPS)
