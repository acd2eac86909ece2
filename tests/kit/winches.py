"""Two winches for tests, whose actions have other bounds and types than -1 and 1 of float32."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from tests.kit.boxed import Boxed

SPACES = {
    "force": Box(0.0, 12.0, (2,), np.float32),
    "whole": Box(np.array([-3, 0]), np.array([9, 255]), (2,), np.int64),
    "double": Box(np.array([0.1, -3.0]), np.array([0.7, -3.0]), (2,), np.float64),
    "unit": Box(-1.0, 1.0, (2,), np.float64),
}
"""One component of `double` has equal bounds."""
WINCHES = "tests.kit.winches:Winches-v0"
TAKEN: list[np.ndarray] = []
"""Actions that environments were given, in order."""


class Winches(Boxed):
    """A point that actions pull, as shares of their bounds; it pays for being near to 1."""

    def __init__(self, units: str = "force", render_mode: str | None = None) -> None:
        super().__init__(3)
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.action_space = SPACES[units]

    def begin(self):
        self.place = self.np_random.uniform(-2.0, 2.0, 3)

    def seen(self):
        return self.place.copy()

    def step(self, action):
        assert self.action_space.contains(action)
        TAKEN.append(action.copy())
        low, high = (
            bound.astype(float) for bound in (self.action_space.low, self.action_space.high)
        )
        share = (action - low) / np.where(high > low, high - low, 1.0)
        self.place = 0.9 * self.place + np.append(share, share[0] - share[1])
        return self.seen(), -abs(float(self.place[0]) - 1.0), False, False, {}


gymnasium.register("Winches-v0", Winches, max_episode_steps=9)
