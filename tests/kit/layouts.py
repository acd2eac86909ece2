"""A point that pushes a disc, observed in many ways: which columns are what is known beforehand.

An observation is a list of groups by name, in any order. `random_groups` draws one.
"""

import gymnasium
import numpy as np

from tests.kit.boxed import Boxed

LAYOUT = "tests.kit.layouts:Layout-v0"
STEPS = 50
TOUCH, STEP = 0.15, 0.1
SIZES = {
    **{"point": 2, "disc": 2, "second": 2, "difference": 2, "distance": 1, "goal": 2},
    **{"speed": 2, "disc_speed": 2, "action": 2, "clock": 1, "constant": 1, "mover": 2},
    **{"noise": 2, "fresh_noise": 2, "contact": 1, "lamp": 1, "yaw": 2, "far_unit": 2},
    **{"egocentric": 2, "slider": 1, "block": 1, "mixed": 4},
    **{"point_before": 2, "disc_before": 2, "point_again": 2, "point_long_before": 2},
}
"""Columns of each group."""
OTHERS = (
    *("second", "difference", "distance", "goal", "speed", "disc_speed", "action", "clock"),
    *("constant", "mover", "noise", "contact", "lamp", "yaw"),
)
"""What may stand beside point and disc in a layout that is drawn."""


def columns(groups, name):  # the columns of a group
    first = sum(SIZES[group] for group in groups[: groups.index(name)])
    return tuple(range(first, first + SIZES[name]))


def random_groups(random):  # point, disc and some others in any order
    count = random.integers(0, len(OTHERS) + 1)
    groups = ["point", "disc", *random.choice(OTHERS, count, replace=False).tolist()]
    return [groups[one] for one in random.permutation(len(groups))]


class Layout(Boxed):
    """Moves a point by actions, which push what they meet.

    Args:
        groups: What is observed.
        axes: How many numbers an action has; with one, all is on a line.
        habits: Of the world. `late`: steps until an action acts; `apart`: least distance of point
            and disc at the beginning; `grasped`: the disc follows the point from there; `fixed`:
            every episode begins alike; `unseeded`: episodes do not come from their seeds; `ends`:
            after how many steps.
    """

    def __init__(self, groups, axes=2, **habits):
        known = {"late": 0, "apart": 0.2, "ends": STEPS}
        self.groups, self.axes, self.habits = groups, axes, known | habits
        super().__init__(sum(SIZES[group] for group in groups), axes)

    def begin(self):
        draw = np.random.default_rng(7) if "fixed" in self.habits else self.np_random
        draw = np.random.default_rng() if "unseeded" in self.habits else draw
        self.steps, self.turned, self.waiting = 0, 0.0, [np.zeros(2)] * self.habits["late"]
        self.point, self.goal, self.second = draw.uniform(-0.6, 0.6, (3, 2))
        angle, far = draw.uniform(-np.pi, np.pi), self.habits["apart"] + draw.uniform(0.0, 0.5)
        self.disc = self.point + far * np.array([np.cos(angle), np.sin(angle)])
        if self.axes == 1:
            self.point[1] = self.disc[1] = 0.0
        self.long_before = self.before = self.point
        self.disc_before, self.action = self.disc, np.zeros(2)

    def step(self, action):
        self.steps += 1
        self.waiting.append(np.resize(action, 2) * (np.arange(2) < self.axes))
        self.action = self.waiting.pop(0)
        self.long_before, self.before, self.disc_before = self.before, self.point, self.disc
        self.point = np.clip(self.point + STEP * self.action, -1.5, 1.5)
        self.disc, self.second = self.pushed(self.disc), self.pushed(self.second)
        if "grasped" in self.habits:
            self.disc = self.disc_before + self.point - self.before
        return self.seen(), 0.0, self.steps == self.habits["ends"], False, {}

    def pushed(self, thing):
        away = thing - self.point
        distance = np.linalg.norm(away)
        return thing if distance >= TOUCH else self.point + away / max(distance, 1e-9) * TOUCH

    def seen(self):
        self.turned += (self.disc - self.disc_before) @ [1.0, -0.5]
        return np.concatenate([np.ravel(WAYS[group](self)) for group in self.groups])


def _away(world):
    return world.disc - world.point


def _turn(angle):
    return np.array([np.cos(angle), np.sin(angle)])


WAYS = {
    "point": lambda world: world.point,
    "disc": lambda world: world.disc,
    "second": lambda world: world.second,
    "difference": _away,
    "distance": lambda world: np.linalg.norm(_away(world)),
    "goal": lambda world: world.goal,
    "speed": lambda world: world.point - world.before,
    "disc_speed": lambda world: world.disc - world.disc_before,
    "action": lambda world: world.action,
    "clock": lambda world: 0.02 * world.steps,
    "constant": lambda world: 1.0,
    "mover": lambda world: np.array([np.cos(world.steps), np.sin(2.0 * world.steps)]),
    "noise": lambda world: world.np_random.normal(size=2),
    "fresh_noise": lambda world: np.random.default_rng().normal(size=2),
    "contact": lambda world: np.linalg.norm(_away(world)) < TOUCH + 1e-6,
    "lamp": lambda world: world.point[0] > 0.5,
    "yaw": lambda world: _turn(3.0 * world.turned),
    "far_unit": lambda world: 1000.0 * world.disc,
    "egocentric": lambda world: _away(world)[::-1] * [1.0, -1.0],
    "slider": lambda world: world.point[0],
    "block": lambda world: world.disc[0],
    "point_before": lambda world: world.before,
    "point_long_before": lambda world: world.long_before,
    "disc_before": lambda world: world.disc_before,
    "point_again": lambda world: world.point,
    "mixed": lambda world: np.stack([world.point, world.disc], axis=1),
}
"""What a world shows as each group."""


gymnasium.register("Layout-v0", Layout, max_episode_steps=STEPS)


class Palm(Boxed):
    """Three joints that hold a thing: whichever way they turn, it is pushed on."""

    def __init__(self):
        super().__init__(6, actions=3, goal=3)

    def begin(self):
        self.joints, self.thing, self.goal = self.np_random.uniform(-1.0, 1.0, (3, 3))

    def step(self, action):
        self.joints = self.joints + 0.1 * action
        self.thing = self.thing + 0.05 * np.abs(action)
        return self.seen(), 0.0, False, False, {}

    def seen(self):
        seen = {"achieved_goal": self.thing.copy(), "desired_goal": self.goal.copy()}
        return {"observation": np.concatenate([self.joints, self.thing]), **seen}

    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(achieved - desired, axis=-1)


gymnasium.register("Palm-v0", Palm, max_episode_steps=STEPS)
