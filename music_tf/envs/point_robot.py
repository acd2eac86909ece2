"""A point that has to find a hidden place: a family of tasks in pure numpy.

A family of tasks is an environment with two further methods. `sample_tasks(count, generator)` draws
tasks, vectors [count, D]; `set_task(task)` sets one of them from the next reset on.
"""

import math
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.envs.toys import GREEN, RED, from_above
from music_tf.types import Floats

_STEP_LENGTH = 0.1
_NEAR = 0.2
"""Distance within which the sparse reward is above 0."""


class PointRobot(gymnasium.Env[Floats, npt.NDArray[np.float32]]):
    """A point whose task is a place in the plane, known by the reward alone.

    As in PEARL (arXiv:1903.08254, section 6.3) and its code. Observation: position x, y. Action: a
    step of at most 0.1 along each axis. Reward: minus the distance to the place, after the step.
    The `sparse_reward` of `info` is 1 minus that distance within 0.2 of the place, else 0.

    With `layout` square, point and place are uniform in [-1, 1]^2. With half_circle the point
    begins in the middle of a circle of `radius`, and the tasks of a draw are evenly spread over its
    upper half, in random order.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        *,
        layout: Literal["square", "half_circle"] = "square",
        radius: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        if layout not in ("square", "half_circle"):
            raise ValueError(f"layout: expected square or half_circle, got {layout!r}")
        self._circle, self._radius = layout == "half_circle", float(radius)
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-math.inf, math.inf, (2,), np.float64)
        self._place = np.array([0.0, self._radius])
        self._point = np.zeros(2)

    def sample_tasks(self, count: int, generator: np.random.Generator) -> Floats:
        """Draws places, [count, 2]."""
        if not self._circle:
            return generator.uniform(-1.0, 1.0, (count, 2))
        angles = generator.permutation(np.linspace(0.0, math.pi, count))
        return self._radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def set_task(self, task: Floats) -> None:
        self._place = np.array(task, np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._point = np.zeros(2) if self._circle else self.np_random.uniform(-1.0, 1.0, 2)
        return self._point.copy(), {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        self._point = self._point + _STEP_LENGTH * np.clip(action.astype(np.float64), -1.0, 1.0)
        distance = math.dist(self._point, self._place)
        near = distance <= _NEAR
        info = {"sparse_reward": 1.0 - distance if near else 0.0, "is_success": near}
        return self._point.copy(), -distance, False, False, info

    def render(self) -> npt.NDArray[np.uint8]:
        """Draws place and point from above."""
        return from_above({GREEN: self._place, RED: self._point}, 1.5 * max(1.0, self._radius))
