"""What the jobs of the fault battery find in place of TensorFlow: a name for everything.

Loading it also puts the numpy learner in place of the real one. Keras and TensorFlow Probability
are stood in for by the same module.
"""

import sys


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


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything


sys.modules["keras"] = sys.modules["tensorflow_probability"] = sys.modules[__name__]

from tests.faults import stub  # noqa: E402 - its imports need the names above

stub.install()
