"""Goal environments as people have them, each with one trouble; a point that moves in the plane.

`more`, `cost` and `over` are where they differ; ids are class names with `-v0`.
"""

from typing import Any

import gymnasium
import numpy as np
import pytest

STEPS = 20


class Point(gymnasium.Env[Any, Any]):
    def __init__(self):
        box = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        names = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = gymnasium.spaces.Dict(dict.fromkeys(names, box))
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.place, self.goal = self.np_random.uniform(-1, 1, (2, 2))
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        self.place = self.place + 0.1 * np.asarray(action, float)
        seen = self.seen()
        info = {"is_success": False, **self.more()}
        reward = self.compute_reward(seen["achieved_goal"].copy(), self.goal.copy(), info)
        return seen, float(reward), self.over(), False, info

    def seen(self):
        place, goal = self.place.copy(), self.goal.copy()
        return {"observation": place, "achieved_goal": place, "desired_goal": goal}

    def more(self):
        return {}

    def cost(self, info):
        return 0.0

    def over(self):
        return False

    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(achieved - desired, axis=-1) - self.cost(info)


class Sparse(Point):
    """Pays 0 at the goal and -1 elsewhere."""

    def compute_reward(self, achieved, desired, info):
        return (np.linalg.norm(achieved - desired, axis=-1) < 0.3) - 1.0


class Ends(Point):
    """Pays 1 at the goal, where the episode is over."""

    def over(self):
        return bool(self.compute_terminated(self.place, self.goal, {}))

    def compute_reward(self, achieved, desired, info):
        return (np.linalg.norm(achieved - desired, axis=-1) < 0.3).astype(float)

    def compute_terminated(self, achieved, desired, info):
        return np.linalg.norm(achieved - desired, axis=-1) < 0.3


class EndsOneByOne(Ends):
    """Says of many goals at once whether any of them is reached."""

    def compute_terminated(self, achieved, desired, info):
        return bool((np.linalg.norm(achieved - desired, axis=-1) < 0.3).any())


class EndsSilently(Ends):
    """Does not say where episodes under other goals end."""

    compute_terminated = None

    def over(self):
        return bool(self.compute_reward(self.place, self.goal, {}))


@pytest.fixture
def points():
    """Makes all of them known to Gymnasium, by the names of their classes."""

    def below(kind):
        return [kind, *(found for each in kind.__subclasses__() for found in below(each))]

    ids = {f"{kind.__name__}-v0": kind for kind in below(Point)}
    for env_id, kind in ids.items():
        gymnasium.register(env_id, kind, max_episode_steps=STEPS)
    yield ids
    for env_id in ids:
        del gymnasium.registry[env_id]
