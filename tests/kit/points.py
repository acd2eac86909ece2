"""Goal environments as people have them, each with one trouble; a point that moves in the plane.

`more`, `cost` and `over` are where they differ; ids are class names with `-v0`.
"""

import gymnasium
import numpy as np
import pytest

from tests.kit.boxed import Boxed

STEPS = 20


class Point(Boxed):
    def __init__(self):
        super().__init__(2, goal=2)

    def begin(self):
        self.steps = 0
        self.place, self.goal = self.np_random.uniform(-1, 1, (2, 2))

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


class Sparse(Point):  # pays 0 at the goal and -1 elsewhere
    near = 0.3

    def compute_reward(self, achieved, desired, info):
        return (np.linalg.norm(achieved - desired, axis=-1) < self.near) - 1.0


class Items(Point):  # reads info by going through it
    def more(self):
        return {"cost": 2.0, "name": "point"}

    def cost(self, info):
        return sum(value for name, value in info.items() if name == "cost")


class Lists(Items):  # goes through numbers of two axes, which replay cannot keep
    def more(self):
        return {"path": np.ones((2, 3))}

    def cost(self, info):
        return sum(np.sum(value) for name, value in info.items() if name == "path")


class Later(Point):  # reads an entry that the first steps do not have
    def more(self):
        return {"force": 2.0} if self.steps > 3 else {}

    def cost(self, info):
        return info["force"] if "force" in info else 0.0  # noqa: SIM401 - as people write


class SaysSuccess(Sparse):  # tells success where it comes, and nothing elsewhere
    def step(self, action):
        *found, _ = super().step(action)
        return *found, {"is_success": True} if found[1] == 0.0 else {}


class NoSuccess(Sparse):  # does not tell where its goal is met
    def step(self, action):
        *found, _ = super().step(action)
        return *found, {}


class Rare(Point):  # reads an entry that the steps of random actions do not have
    def more(self):
        return {"crash": 10.0} if np.abs(self.place).max() > 2.0 else {}

    def cost(self, info):
        return info.get("crash", 0.0)


class AfterTouch(Point):  # reads an entry only after another was true
    def more(self):
        return {"touch": self.steps % 5 == 4, "force": 0.1 * self.steps}

    def cost(self, info):
        return info["force"] if info["touch"] else 0.0


class Chatty(Point):  # reads a word, which replay cannot keep
    def more(self):
        return {"phase": "far" if self.steps < 10 else "near"}

    def cost(self, info):
        return 1.0 if info.get("phase") == "near" else 0.0


class Far(Point):  # has goals in metres of a map
    def begin(self):
        super().begin()
        self.place, self.goal = self.place + 5e6, self.goal + 5e6


class Moves(Point):  # draws another goal within the episode
    def step(self, action):
        if self.steps == 10:
            self.goal = self.np_random.uniform(-1, 1, 2)
        return super().step(action)


class MovesUnpaid(Moves, Sparse):  # does so, and pays at a goal alone that random actions miss
    near = 1e-9


class Lies(Point):  # pays something else than it computes
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward - 1.0, *rest


class Shows(Point):  # shows where the goal lies in its observation
    def seen(self):
        return super().seen() | {"observation": self.goal - self.place}


class ReadsGoal(Point):  # has a goal that can be read alone
    def begin(self):
        self.steps = 0
        self.place, self.aim = self.np_random.uniform(-1, 1, (2, 2))

    @property
    def goal(self):
        return self.aim


class AsksGoal(ReadsGoal):  # has a method of that name
    def goal(self):
        return self.aim

    def step(self, action):
        self.steps += 1
        self.place = self.place + 0.1 * np.asarray(action, float)
        return self.seen(), self.compute_reward(self.place, self.goal(), {}), False, False, {}

    def seen(self):
        place = self.place.copy()
        return {"observation": place, "achieved_goal": place, "desired_goal": self.goal().copy()}


class ShowsHidden(Shows):  # keeps its goal where nobody can set it
    begins = True

    def begin(self):
        self.begins = True
        super().begin()
        self.begins = False

    @property
    def goal(self):
        return self.aim

    @goal.setter
    def goal(self, value):
        if self.begins:
            self.aim = value


class Onwards(Sparse):  # draws another goal as soon as one is met
    def step(self, action):
        found = super().step(action)
        if found[1] == 0.0:
            self.goal = self.np_random.uniform(-1, 1, 2)
        return found


class Resting(Point):  # has achieved what random actions never change
    def seen(self):
        return super().seen() | {"achieved_goal": np.zeros(2)}


class KnowsGoal(Point):  # pays for the goal of its episode, whatever goal it is asked about
    def compute_reward(self, achieved, desired, info):
        return super().compute_reward(achieved, self.goal, info)


class KnowsHit(Point):  # pays for a flag in info, which was told under the goal of the episode
    def more(self):
        return {"hit": bool(np.linalg.norm(self.place - self.goal) < 0.3)}

    def compute_reward(self, achieved, desired, info):
        return info["hit"] - 1.0


class Progress(Point):
    """Pays for how much nearer its goal a step came, by the distance before, kept in info."""

    def step(self, action):
        self.before = np.linalg.norm(self.place - self.goal)
        return super().step(action)

    def more(self):
        return {"before": self.before}

    def compute_reward(self, achieved, desired, info):
        return info["before"] - np.linalg.norm(achieved - desired, axis=-1)


class FineFarAway(Sparse):  # has small steps and a small threshold, thousands of metres away
    near = 1e-4

    def begin(self):
        super().begin()
        self.place, self.goal = 4321.0 + 0.01 * self.place, 4321.0 + 0.01 * self.goal

    def step(self, action):
        return super().step(0.001 * action)


class PaysElsewhere(Point):
    """Shows another goal where one is set, and pays for the one that it drew."""

    def begin(self):
        super().begin()
        self.drawn = self.goal

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float(self.compute_reward(seen["achieved_goal"], self.drawn, {})), *rest


class Mapped(Sparse):  # computes nothing for goals off its map
    def compute_reward(self, achieved, desired, info):
        if np.abs(desired).max() > 5.0:
            raise IndexError("off the map")
        return super().compute_reward(achieved, desired, info)


class MappedLies(Lies, Mapped):
    pass


class Together(Point):  # computes one distance for many goals
    def compute_reward(self, achieved, desired, info):
        return -np.linalg.norm(achieved - desired) * np.ones(np.shape(achieved)[:-1])


class Rescaled(gymnasium.ObservationWrapper):
    """Shows goals in other units than those of `compute_reward`."""

    def observation(self, seen):
        return {name: values / 10.0 for name, values in seen.items()}


class Burns(Sparse):  # breaks in its third step
    def step(self, action):
        if self.steps == 2:
            raise RuntimeError("the motor burns")
        return super().step(action)


class PaysNone(Sparse):  # forgets its reward
    def step(self, action):
        seen, _, *others = super().step(action)
        return seen, None, *others


class FallsLater(Point):  # ends its episodes whatever the goal is, some later than others
    def over(self):
        return self.steps >= 10 and abs(self.place[0]) > 0.3


class Ends(Point):  # pays 1 at the goal, where the episode is over
    def over(self):
        return bool(self.compute_terminated(self.place, self.goal, {}))

    def compute_reward(self, achieved, desired, info):
        return (np.linalg.norm(achieved - desired, axis=-1) < 0.3).astype(float)

    def compute_terminated(self, achieved, desired, info):
        return np.linalg.norm(achieved - desired, axis=-1) < 0.3


class EndsOneByOne(Ends):  # says of many goals at once whether any of them is reached
    def compute_terminated(self, achieved, desired, info):
        return bool((np.linalg.norm(achieved - desired, axis=-1) < 0.3).any())


class EndsUnsaid(Ends):  # ends at its goal, and says of no goal that it does
    def over(self):
        return bool(self.compute_reward(self.place, self.goal, {}))

    def compute_terminated(self, achieved, desired, info):
        return False


class SaysEnds(Ends):  # says that an episode ends at its goal, where it goes on
    def over(self):
        return False


class EndsSilently(EndsUnsaid):  # does not say where episodes under other goals end
    compute_terminated = None


class Pixels(Point):
    """Has goals that are numbers of pixels, whose differences wrap round at 256."""

    kind, most = np.uint8, 255

    def __init__(self):
        super().__init__()
        goal = gymnasium.spaces.Box(0, self.most, (2,), self.kind)
        goals = {"achieved_goal": goal, "desired_goal": goal}
        self.observation_space = gymnasium.spaces.Dict({**self.observation_space.spaces, **goals})

    def begin(self):
        super().begin()
        self.goal = self.cell(self.goal)

    def cell(self, place):
        return np.clip((place + 1.0) / 2.0 * (self.most + 0.5), 0, self.most).astype(self.kind)

    def seen(self):
        goals = {"achieved_goal": self.cell(self.place), "desired_goal": self.goal}
        return {"observation": self.place.copy(), **goals}

    def compute_reward(self, achieved, desired, info):
        return -(np.abs(achieved - desired).max(axis=-1) > 20).astype(float)


class Flags(Pixels):  # has goals that are truth values
    kind, most = np.bool_, 1

    def compute_reward(self, achieved, desired, info):
        return -(achieved ^ desired).sum(axis=-1).astype(float)


class Cells(Pixels):  # looks the numbers of its goals up in a table
    kind, most = np.int64, 9

    def compute_reward(self, achieved, desired, info):
        table = np.abs(np.arange(10)[:, None] - np.arange(10))
        return -table[achieved, desired].sum(axis=-1).astype(float)


@pytest.fixture
def points():
    """Makes all of them known to Gymnasium, by the names of their classes."""

    def below(kind):
        return [kind, *(found for each in kind.__subclasses__() for found in below(each))]

    ids = {f"{kind.__name__}-v0": kind for kind in below(Point)}
    for env_id, kind in ids.items():
        gymnasium.register(env_id, kind, max_episode_steps=STEPS)
    ids["Rescaled-v0"] = Rescaled
    gymnasium.register("Rescaled-v0", lambda: Rescaled(Point()), max_episode_steps=STEPS)
    yield ids
    for env_id in ids:
        del gymnasium.registry[env_id]
