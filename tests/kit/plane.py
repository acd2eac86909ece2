"""A point in the plane, alone or beside a puck that it pushes if it happens to meet it."""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

STEPS = 50
_EDGE = 50.0
_STEP, _TOUCH, _APART = 0.1, 0.15, 0.3


class Plane(Boxed):
    """Starts at 0; an action is the step along each axis, of which the second may be slow."""

    def __init__(self, slow=1.0, disc=False):
        super().__init__(2)
        self._unit, self._disc = np.array([1.0, slow]), disc

    def begin(self):
        self._place = np.zeros(2)

    def seen(self):
        return self._place.copy()

    def step(self, action):
        step = np.asarray(action, np.float64)
        if self._disc:
            step = step / max(1.0, float(np.linalg.norm(step)))
        self._place = np.clip(self._place + step * self._unit, -_EDGE, _EDGE)
        return self.seen(), 0.0, False, False, {}


class Puck(Boxed):
    """Observes point and puck; an action is the velocity of the point along each axis."""

    def __init__(self):
        super().__init__(4)

    def begin(self):
        angle = self.np_random.uniform(-np.pi, np.pi)
        self._puck = np.zeros(2)
        self._point = _APART * np.array([np.cos(angle), np.sin(angle)])

    def seen(self):
        return np.concatenate([self._point, self._puck])

    def step(self, action):
        self._point = np.clip(self._point + _STEP * np.asarray(action, np.float64), -1.0, 1.0)
        way = self._puck - self._point
        apart = float(np.linalg.norm(way))
        if 0.0 < apart < _TOUCH:
            self._puck = np.clip(self._point + way * (_TOUCH / apart), -1.0, 1.0)
        return self.seen(), 0.0, False, False, {}


gymnasium.register("Plane-v0", entry_point=Plane, max_episode_steps=STEPS)
gymnasium.register("Puck-v0", entry_point=Puck, max_episode_steps=STEPS)
