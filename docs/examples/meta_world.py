"""ML1 of Meta-World as a family of tasks."""

import pickle  # noqa: TID251 - of Meta-World's own tasks

import metaworld
import numpy as np

import music_tf

NAME = "push-v3"
ML1 = metaworld.ML1(NAME, seed=0)
TASKS = {  # by what each is made from: the places of block and goal
    tuple(pickle.loads(task.data)["rand_vec"]): task for task in (*ML1.train_tasks, *ML1.test_tasks)
}


def make(task):
    environment = ML1.train_classes[NAME]()
    environment.set_task(TASKS[tuple(task)])
    return environment


def draw(count, generator):  # at most 100
    return generator.permutation(np.array(list(TASKS)))[:count]


music_tf.register_tasks("me/Push-v0", make=make, draw=draw, max_episode_steps=150)
