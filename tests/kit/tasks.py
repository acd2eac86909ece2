"""Families of tasks as people write them, each with one habit; ids are `tests.kit.tasks:...`."""

import gymnasium
import numpy as np

import music_tf
from tests.kit.boxed import Boxed

STEPS = 12


class Places(Boxed):
    """A point that is paid for being near the place of its task."""

    def __init__(self) -> None:
        super().__init__(2)
        self.task = np.zeros(2)

    def sample_tasks(self, count, generator):
        return generator.uniform(-1, 1, (count, 2))

    def set_task(self, task):
        self.task = task

    def begin(self):
        self.place, self.point = self.drawn_place(), np.zeros(2)

    def drawn_place(self):
        return self.task

    def seen(self):
        return self.point.copy()

    def step(self, action):
        self.point = self.point + 0.1 * action
        return self.seen(), self.paid(), False, False, {}

    def paid(self):
        return -float(np.linalg.norm(self.point - self.place))


class Forgets(Places):  # draws a place of its own in its reset
    def drawn_place(self):
        return self.np_random.uniform(-1, 1, 2)


class OneTask(Places):  # draws one and the same task
    def sample_tasks(self, count, generator):
        return np.ones((count, 2))


class Late(Places):  # takes a task from the reset after the next one on
    later = np.full(2, 0.25)

    def drawn_place(self):
        self.later, now = self.task, self.later
        return now


class LateFromItsOwn(Late):  # does so from the first of the tasks that are tried
    later = np.random.default_rng(0).uniform(-1, 1, (8, 2))[0]


class TooSparse(Places):  # pays where random actions do not come
    def paid(self):
        return float(np.linalg.norm(self.point - 9.0 * self.task) < 0.1)


class Restless(Places):  # draws from a generator that no seed sets
    drawn = np.random.default_rng(3)

    def drawn_place(self):
        return self.task + 0.1 * self.drawn.uniform(-1, 1, 2)


class Moods(Boxed):
    """Draws the strength of its motors in its constructor, by `draw`."""

    draw = staticmethod(np.random.uniform)

    def __init__(self) -> None:
        super().__init__(1, actions=1)
        self.gain = self.draw(0.5, 1.5)

    def begin(self):
        self.place = self.np_random.uniform(-1, 1, 1)

    def seen(self):
        return self.place.copy()

    def step(self, action):
        self.place = self.place + self.gain * action
        return self.seen(), -float(self.place[0]), False, False, {}


def with_statistics(task):
    return gymnasium.wrappers.NormalizeObservation(gymnasium.make("Pendulum-v1", g=float(task[0])))


def ignoring(task):
    return gymnasium.make("Pendulum-v1")


for kind in (Places, Forgets, OneTask, Late, LateFromItsOwn, TooSparse, Restless, Moods):
    gymnasium.register(f"{kind.__name__}-v0", kind, max_episode_steps=STEPS)
for name, make in (("WithStatistics", with_statistics), ("Ignoring", ignoring)):
    draw = lambda count, generator: generator.uniform(5.0, 15.0, (count, 1))  # noqa: E731
    music_tf.register_tasks(f"{name}-v0", make=make, draw=draw, max_episode_steps=STEPS)
