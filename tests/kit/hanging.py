"""A load on a rope below a drone, or below the trolley of a crane, which moves on a line."""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

HANGING = "tests.kit.hanging:Hanging-v0"
STEPS = 100
_GRAVITY, _SECONDS = 9.81, 0.01


class Hanging(Boxed):
    """Observes `shown` of drone x z, load x z, drone velocity, load velocity, in `unit`."""

    def __init__(self, axes=2, rope=0.8, damping=0.1, drag=1.0, shown=range(8), unit=1.0):
        self.axes, self.rope, self.damping, self.drag = axes, rope, damping, drag
        self.shown, self.unit = list(shown), unit
        super().__init__(len(self.shown), axes)

    def begin(self):
        self.place = self.np_random.uniform(-0.5, 0.5, 2) * (np.arange(2) < self.axes)
        self.speed, self.turn = np.zeros(2), 0.0
        self.angle = self.np_random.uniform(-0.2, 0.2)

    def step(self, action):
        force = 4.0 * np.resize(action, 2) * (np.arange(2) < self.axes)
        for _ in range(5):
            sine, cosine = np.sin(self.angle), np.cos(self.angle)
            faster = force - self.drag * self.speed
            faster[0] += 0.2 * sine * (self.rope * self.turn**2 + _GRAVITY * cosine)
            pulled = -faster[0] * cosine - (_GRAVITY + faster[1]) * sine
            self.speed = self.speed + _SECONDS * faster
            self.turn += _SECONDS * (pulled / self.rope - self.damping * self.turn)
            self.place = self.place + _SECONDS * self.speed
            self.angle += _SECONDS * self.turn
        return self.seen(), -float(np.linalg.norm(self.place)), False, False, {}

    def seen(self):
        sine, cosine = np.sin(self.angle), np.cos(self.angle)
        load = self.place + self.rope * np.array([sine, -cosine])
        swing = self.speed + self.rope * self.turn * np.array([cosine, sine])
        return self.unit * np.concatenate([self.place, load, self.speed, swing])[self.shown]


gymnasium.register("Hanging-v0", Hanging, max_episode_steps=STEPS)
