"""Goal environments that take liberties with what they are given, or with names; see `points`."""

import numpy as np

from tests.kit.points import Point


class InPlace(Point):
    """Computes its reward in the arrays that it is given."""

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


class OwnArray(Point):
    """Answers in an array of its own, which it fills anew each time."""

    def more(self):
        return {"wind": 1.0}

    def compute_reward(self, achieved, desired, info):
        self.answer = getattr(self, "answer", np.zeros(()))
        self.answer[...] = -np.linalg.norm(achieved - desired) - info["wind"]
        return self.answer


class ScalesAction(Point):
    """Scales the action that it is given."""

    def step(self, action):
        action *= 0.1
        return super().step(action)


class Price(Point):
    """Keys of its `info` are also words of ours."""

    def more(self):
        return {"discount": 0.5, "descriptor": 0.25}

    def cost(self, info):
        return info["discount"] + info["descriptor"]
