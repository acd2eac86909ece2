"""ML10 of Meta-World as a family of tasks: ten kinds to train on, five others to evaluate on."""

import functools

import metaworld
import numpy as np
from metaworld.env_dict import ML10_V3

import music_tf

KINDS = [*ML10_V3["train"], *ML10_V3["test"]]
TRAINED, GOALS = len(ML10_V3["train"]), 50

one_kind = functools.cache(lambda name: metaworld.ML1(name, seed=0))


def make(task):  # the number of a kind, and of one of its goals
    kind, goal = map(int, task)
    benchmark = one_kind(KINDS[kind])
    environment = benchmark.train_classes[KINDS[kind]]()
    environment.set_task(benchmark.train_tasks[goal])
    return environment


def drawn_from(first, last):
    every = np.stack(np.meshgrid(range(first, last), range(GOALS), indexing="ij"), axis=-1)
    return lambda count, generator: generator.permutation(every.reshape(-1, 2))[:count]


music_tf.register_tasks(
    "me/Ten-v0",
    make=make,
    draw=drawn_from(0, TRAINED),
    draw_test=drawn_from(TRAINED, len(KINDS)),
    max_episode_steps=150,
)
