"""Small environments in pure numpy: for tests, and as a first example for your own.

A goal environment returns a dict of three arrays: `observation`, `achieved_goal` and
`desired_goal`. It has its goal in the attribute `goal`, and `is_success` in `info`. Its
`compute_reward(achieved_goal, desired_goal, info)` takes one pair of goals or many.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from music_tf.types import Floats

Observation = dict[str, Floats]
Colour = tuple[int, int, int]

STEP_LENGTH = 0.1
"""Distance that an action of 1 moves the point."""
TOUCH = 0.15
"""Distance at which the point pushes the disc, or can hold it; longer than any step."""
REACHED = 0.1
"""Distance at which a goal counts as achieved."""
_NEAR = TOUCH + 0.05
"""Initial distance of the disc from the point if `near`; they do not touch."""
_IMAGE_SIZE = 96
RED, GREEN, BLUE = (220, 60, 60), (80, 200, 80), (60, 60, 220)


class PointReach(gymnasium.Env[Observation, npt.NDArray[np.float32]]):
    """A point on the square [-1, 1]^2 that has to reach a goal.

    Observation: position x, y, z (z is 0). Action: velocity in x and y. Reward: 0 within
    `REACHED` of the goal, else -1.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_size = 3
    action_size = 2

    def __init__(
        self, *, terminate_when_reached: bool = False, render_mode: str | None = None
    ) -> None:
        self.terminate_when_reached = terminate_when_reached
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.action_size,), np.float32)
        sizes = {"observation": self.observation_size, "achieved_goal": 3, "desired_goal": 3}
        self.observation_space = gymnasium.spaces.Dict(
            {
                key: gymnasium.spaces.Box(-math.inf, math.inf, (size,), np.float64)
                for key, size in sizes.items()
            }
        )
        self.goal = np.zeros(3)
        self._point = [0.0, 0.0]
        self._object = [0.0, 0.0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        places = self.np_random.uniform(-0.6, 0.6, 6).tolist()
        self._point, self._object = places[0:2], places[2:4]
        self.goal = np.array([*places[4:6], 0.0])
        self._place_others()
        return self._observe(), {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Moves the point, and the disc that it pushes or holds."""
        self._move([min(1.0, max(-1.0, float(component))) for component in action])
        observation = self._observe()
        reached = math.dist(observation["achieved_goal"], self.goal) <= REACHED
        terminated = reached and self.terminate_when_reached
        return observation, float(reached) - 1.0, terminated, False, {"is_success": reached}

    def compute_reward(
        self, achieved_goal: npt.ArrayLike, desired_goal: npt.ArrayLike, _info: object
    ) -> Any:
        """Returns 0 if the goal is reached, else -1; for one pair of goals or many [..., 3]."""
        distance = np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1)
        return (distance <= REACHED) - 1.0

    def compute_terminated(
        self, achieved_goal: npt.ArrayLike, desired_goal: npt.ArrayLike, _info: object
    ) -> Any:
        """Whether an episode ends at these goals; for one pair of goals or many [..., 3]."""
        distance = np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1)
        return (distance <= REACHED) & self.terminate_when_reached

    def render(self) -> npt.NDArray[np.uint8]:
        """Draws goal, disc (blue) and point from above."""
        disc = {BLUE: self._object} if self.observation_size > 3 else {}  # noqa: PLR2004
        return from_above({GREEN: self.goal, **disc, RED: self._point}, 1.5)

    def _place_others(self) -> None:
        """Places further objects of a subclass."""

    def _move(self, action: list[float]) -> None:
        self._point = [
            min(1.0, max(-1.0, place + STEP_LENGTH * velocity))
            for place, velocity in zip(self._point, action, strict=False)
        ]

    def _observe(self) -> Observation:
        point = np.array([*self._point, 0.0])
        goals = {"achieved_goal": point.copy(), "desired_goal": self.goal.copy()}
        return {"observation": point, **goals}


class PointPush(PointReach):
    """The point has to bring a disc to the goal, by pushing or by carrying it.

    Observation: point x, y, z; disc x, y, z; disc minus point x, y (both z are 0, but a disc
    that is pushed over the edge at |x| or |y| = 1 falls to z = -0.5 and stays there).
    Action: velocity in x and y, and a grip: above 0 it holds a disc that it touches.
    """

    observation_size = 8
    action_size = 3

    def _move(self, action: list[float]) -> None:
        if self._fallen():
            super()._move(action)
            return
        before = self._point
        touching = math.dist(before, self._object) <= TOUCH
        super()._move(action)
        if touching and action[2] > 0.0:
            self._object = [
                place + new - old
                for place, new, old in zip(self._object, self._point, before, strict=True)
            ]
            return
        away = [place - point for place, point in zip(self._object, self._point, strict=True)]
        distance = math.hypot(*away)
        if 0.0 < distance < TOUCH:  # pushed straight away until they just touch
            self._object = [
                point + TOUCH / distance * part
                for point, part in zip(self._point, away, strict=True)
            ]

    def _fallen(self) -> bool:
        return max(abs(self._object[0]), abs(self._object[1])) > 1.0

    def _observe(self) -> Observation:
        (x, y), (disc_x, disc_y) = self._point, self._object
        height = -0.5 if self._fallen() else 0.0
        return {
            "observation": np.array([x, y, 0.0, disc_x, disc_y, height, disc_x - x, disc_y - y]),
            "achieved_goal": np.array([disc_x, disc_y, height]),
            "desired_goal": self.goal.copy(),
        }


class PointPushCrowd(PointPush):
    """`PointPush` in surroundings that move independently of the point.

    Observation: that of `PointPush`; x and y of a second disc, times `unit`; two columns of uniform
    noise in [-1, 1]. The second disc moves in a circle and touches nothing. The seed determines the
    circle, the phase and the direction. `near` places the first disc beside the point, so that
    random actions often move it.
    """

    observation_size = 12
    turn_steps = 10
    """Steps of the second disc per round."""
    radius = 0.3

    def __init__(self, *, unit: float = 1.0, near: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.unit, self.near = unit, near
        self._centre, self._angle, self._way = [0.0, 0.0], 0.0, 1.0

    def _place_others(self) -> None:
        x, y, turn, way = self.np_random.uniform(-1.0, 1.0, 4).tolist()
        self._centre, self._angle = [0.6 * x, 0.6 * y], math.pi * turn
        self._way = math.copysign(2.0 * math.pi / self.turn_steps, way)
        if self.near:
            side = math.pi * float(self.np_random.uniform(-1.0, 1.0))
            x, y = self._point
            self._object = [x + _NEAR * math.cos(side), y + _NEAR * math.sin(side)]

    def _move(self, action: list[float]) -> None:
        super()._move(action)
        self._angle += self._way

    def _observe(self) -> Observation:
        observed = super()._observe()
        x = self._centre[0] + self.radius * math.cos(self._angle)
        y = self._centre[1] + self.radius * math.sin(self._angle)
        others = self.unit * x, self.unit * y, *self.np_random.uniform(-1.0, 1.0, 2)
        return observed | {"observation": np.array([*observed["observation"], *others])}


class UnitBox(gymnasium.Env[Floats, npt.NDArray[np.float32]]):
    """A point in the box [0, 1]^2, without goals, for learning skills within a minute.

    The box of the DIAYN paper (arXiv:1802.06070). Every episode starts in the middle and has 50
    steps. Observation: position x, y. Action: a step of at most `STEP_LENGTH` along each axis, up
    to the walls. Reward: 10 times the change of x.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}
    middle, edge, step_length = 0.5, 0.5, STEP_LENGTH
    """Where an episode starts, how far the walls are from there, and an action of 1."""
    paid_for_x = 10.0
    """Reward of a change of x by 1."""

    def __init__(self, *, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        low, high = self.middle - self.edge, self.middle + self.edge
        self.observation_space = gymnasium.spaces.Box(low, high, (2,), np.float64)
        self._point = np.full(2, self.middle)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._point = np.full(2, self.middle)
        return self._point.copy(), {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        before = self._point
        moved = before + self.step_length * np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        self._point = np.clip(moved, self.middle - self.edge, self._highest())
        paid = self.paid_for_x * float(self._point[0] - before[0]) + 0.0  # never -0.0
        return self._point.copy(), paid, False, False, {}

    def render(self) -> npt.NDArray[np.uint8]:
        return from_above({RED: self._point - self.middle}, self.edge)

    def _highest(self) -> tuple[float, float]:
        return self.middle + self.edge, self.middle + self.edge


class Square(UnitBox):
    """A point in the square [-10, 10]^2, with a wall that may be opened: the toy of DISk.

    Every episode starts at 0 and has 10 steps, so that an action of 1 reaches the edge. A `wall`
    blocks x > 0. Observation: position x, y. Action: the step along each axis, up to the edge.
    Reward: 0.
    """

    middle, edge, step_length = 0.0, 10.0, 1.0
    paid_for_x = 0.0
    changeable: ClassVar[tuple[str, ...]] = ("wall",)
    """Attributes that changes of the world may set between two episodes."""

    def __init__(self, *, wall: bool = False, render_mode: str | None = None) -> None:
        self.wall = wall
        super().__init__(render_mode=render_mode)

    def render(self) -> npt.NDArray[np.uint8]:
        """Draws the half behind the wall in grey, too."""
        image = super().render()
        if self.wall:
            behind = image[:, _IMAGE_SIZE // 2 :]
            behind[(behind == 255).all(axis=-1)] = 160  # noqa: PLR2004  (what is white)
        return image

    def _highest(self) -> tuple[float, float]:
        return (self.middle if self.wall else self.edge), self.edge


def from_above(marks: Mapping[Colour, Any], reach: float) -> npt.NDArray[np.uint8]:
    """Draws places x, y within `reach` of the middle, each in its colour, [96, 96, 3]."""
    image = np.full((_IMAGE_SIZE, _IMAGE_SIZE, 3), 255, np.uint8)
    for colour, (x, y, *_) in marks.items():
        across, down = (np.clip((part / reach + 1.0) / 2.0, 0.03, 0.97) for part in (x, -y))
        row, column = int(down * _IMAGE_SIZE), int(across * _IMAGE_SIZE)
        image[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4] = colour
    return image
