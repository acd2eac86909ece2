"""Goal environments that people really have, each with one trouble.

`more` adds to `info`, `cost` is taken off the reward.
"""

import copy

import gymnasium
import numpy as np

STEPS = 20


class Point(gymnasium.Env):
    """A point that moves by a tenth of its action; the nearer to the goal, the more it pays."""

    def __init__(self, render_mode=None):
        box = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        keys = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = gymnasium.spaces.Dict(dict.fromkeys(keys, box))
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.aim = self.np_random.uniform(-1, 1, (2, 2))
        return self.seen(), {}

    def seen(self):
        return {
            "observation": self.place.copy(),
            "achieved_goal": self.place.copy(),
            "desired_goal": self.aim.copy(),
        }

    def step(self, action):
        self.place = self.place + 0.1 * np.asarray(action, float)
        info = {"is_success": False, **self.more()}
        given = (self.place.copy(), self.aim.copy(), copy.deepcopy(info))
        reward = float(self.compute_reward(*given))
        return self.seen(), reward, False, False, info

    def more(self):
        return {}

    def cost(self, info):
        return 0.0

    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(achieved - desired, axis=-1) - self.cost(info)


class InPlace(Point):
    """Computes its reward in the arrays that it is given."""

    def compute_reward(self, achieved, desired, info):
        desired -= achieved
        return -np.linalg.norm(desired, axis=-1)


class InPlaceWithInfo(Point):
    """Does so with what it reads of `info` too, which is an array, and goals come one by one."""

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
        self.answer = getattr(self, "answer", np.zeros(1))
        self.answer[0] = -np.linalg.norm(achieved - desired) - info["wind"]
        return self.answer[0:1].reshape(())


class ScalesAction(Point):
    """Scales the action that it is given."""

    def step(self, action):
        action *= 0.1
        return super().step(action)


class Price(Point):
    """A key of its `info` is also a word of ours."""

    def more(self):
        return {"discount": 0.5, "descriptor": 0.25}

    def cost(self, info):
        return info["discount"] + info["descriptor"]


for kind in Point.__subclasses__():
    gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=STEPS)
