"""A hand that pushes a disc about a plane, with one trouble that environments of people have."""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

TROUBLED = "tests.kit.troubles:Troubled-v0"
STEPS = 30


class Troubled(Boxed):
    """Observes hand and disc in `unit`, with the trouble of that name.

    `narrow`: declares less than it observes; `next`: resets itself and returns that; `alone`: one
    at a time; `options`: its reset needs some; `objects`: arrays of them; `unseeded`: begins a bit
    differently each time; `out of reach`: the disc lies far away, always at the same place;
    `blind`: has no render.
    """

    living = 0

    def __init__(self, trouble="", unit=1.0):
        self.trouble, self.unit, self.open = trouble, unit, True
        if trouble == "alone" and Troubled.living:
            raise RuntimeError("the simulator is in use")
        Troubled.living += trouble == "alone"
        bound = 0.3 if trouble == "narrow" else 50.0
        super().__init__(4)
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (4,), np.float64)
        if trouble == "blind":
            self.render = super(Boxed, self).render

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.count, far = 0, options["course"] if self.trouble == "options" else 0.0
        self.hand = self.np_random.uniform(-0.2, 0.2, 2) + far
        if self.trouble == "unseeded":
            self.hand += np.random.default_rng().uniform(-1e-4, 1e-4, 2)
        self.disc = self.hand + np.array([0.15, 0.0])
        if self.trouble == "out of reach":
            self.disc = np.array([30.0, 40.0])
        return self.observe(), {}

    def step(self, action):
        self.count += 1
        self.hand = self.hand + (0.06 if self.trouble == "next" else 0.1) * np.asarray(
            action, float
        )
        away = self.disc - self.hand
        if np.linalg.norm(away) < 0.1:
            self.disc = self.hand + away / max(np.linalg.norm(away), 1e-6) * 0.1
        paid = -float(np.linalg.norm(self.disc))
        if self.trouble == "next" and self.count == STEPS - 10:
            return self.reset()[0], paid, False, True, {}
        return self.observe(), paid, False, False, {}

    def observe(self):
        kind = object if self.trouble == "objects" else np.float64
        return (self.unit * np.concatenate([self.hand, self.disc])).astype(kind)

    def close(self):
        Troubled.living -= self.open and self.trouble == "alone"
        self.open = False


gymnasium.register("Troubled-v0", Troubled, max_episode_steps=STEPS)
