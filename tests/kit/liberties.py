"""Goal environments that take liberties with what they are given, or with names; see `points`."""

import os
import sys

import gymnasium
import numpy as np

from tests.kit.points import Point


class InPlace(Point):  # computes its reward in the arrays that it is given
    def compute_reward(self, achieved, desired, info):
        desired -= achieved
        return -np.linalg.norm(desired, axis=-1)


class InPlaceWithInfo(Point):
    """Does so with what it reads of `info` too, an array, and goals come one by one."""

    def step(self, action):
        *found, _ = super().step(action)
        return *found, self.more()

    def more(self):
        return {"wind": np.array([1.0, 2.0])}

    def compute_reward(self, achieved, desired, info):
        desired -= achieved
        info["wind"] *= 0.5
        return -np.linalg.norm(desired) - info["wind"].sum()


class OwnArray(Point):  # answers in an array of its own, which it fills anew each time
    def more(self):
        return {"wind": 1.0}

    def compute_reward(self, achieved, desired, info):
        self.answer = getattr(self, "answer", np.zeros(()))
        self.answer[...] = -np.linalg.norm(achieved - desired) - info["wind"]
        return self.answer


class ScalesAction(Point):  # scales the action that it is given
    def step(self, action):
        action *= 0.1
        return super().step(action)


class Strict(Point):
    """Asserts that an action lies in its space, whose bounds single precision does not hold."""

    space = gymnasium.spaces.Box(np.array([-0.1, 0.2]), np.array([0.1, 0.7]), dtype=np.float64)

    def __init__(self):
        super().__init__()
        self.action_space = self.space

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken = action
        return super().step(action)


class StrictlyWhole(Strict):  # takes whole numbers alone
    space = gymnasium.spaces.Box(np.array([-3, 0]), np.array([3, 4]), dtype=np.int64)


class ShyOfCorners(Point):  # fails where an action reaches a bound
    def step(self, action):
        assert np.abs(action).max() < 1.0, "the joint is at its end"
        return super().step(action)


class OwnObservation(Point):  # observes in an array of its own, which it fills anew each time
    def seen(self):
        self.kept = getattr(self, "kept", np.zeros(2))
        self.kept[:] = self.place
        return super().seen() | {"observation": self.kept}


class Quits(Point):  # tries to end the process
    where = "step"

    def step(self, action):
        if self.where == "step":
            sys.exit(0)
        return super().step(action)

    def reset(self, **options):
        if self.where == "reset":
            sys.exit(0)
        return super().reset(**options)

    def compute_reward(self, achieved, desired, info):
        if self.where == "compute_reward":
            sys.exit(0)
        return super().compute_reward(achieved, desired, info)


class Wanders(Point):
    """Leaves the folder of its process, as code does that looks for files of its own."""

    folder = "."

    def reset(self, **options):
        os.chdir(self.folder)
        return super().reset(**options)


class PaysInArrays(Point):  # pays an array of one number
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, np.array([reward]), *rest


class Touches(Point):  # observes more than a goal environment does
    def __init__(self):
        super().__init__()
        more = {"touch": gymnasium.spaces.Box(0.0, 1.0, (1,))}
        self.observation_space = gymnasium.spaces.Dict({**self.observation_space.spaces, **more})

    def seen(self):
        return super().seen() | {"touch": np.ones(1, np.float32)}


class Price(Point):  # keys of its `info` are also words of ours
    def more(self):
        return {"discount": 0.5, "descriptor": 0.25}

    def cost(self, info):
        return info["discount"] + info["descriptor"]
