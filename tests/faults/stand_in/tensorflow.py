"""What the jobs of the fault battery find in place of TensorFlow: variables, and other names.

Loading it also puts the numpy learner in place of the real one. Keras and TensorFlow Probability
are stood in for by the same module.
"""

import sys

import numpy as np


class _Names(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_Names):
    def __init__(self, *arguments, **named):
        pass


class config(Anything):  # noqa: N801 - TensorFlow's name
    @staticmethod
    def list_physical_devices(kind=None):
        return []


class Variable(np.ndarray):
    def __new__(cls, value, dtype=None):
        return np.array(value).view(cls)

    def numpy(self):
        return np.array(self)

    def assign(self, value):
        self[...] = value

    def assign_add(self, value):
        self[...] += value


def function(run, **options):
    return run


def reduce_sum(values):
    return Variable(np.sum(values))


zeros_like = np.zeros_like


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything


sys.modules["keras"] = sys.modules["tensorflow_probability"] = sys.modules[__name__]

from tests.faults import stub  # noqa: E402 - its imports need the names above

stub.install()
