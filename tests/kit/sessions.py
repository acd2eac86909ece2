"""A whole run within this process, as `music-tf train` goes through it."""

import contextlib
import itertools
import math
from unittest import mock

from music_tf.distributed import Communicator
from music_tf.reading.command import TrainCommand
from music_tf.runs import session
from music_tf.runs.start import StartDecisions
from music_tf.tools.evaluation_pictures import Drawing
from music_tf.training.evaluation import Comparison


def uncompared(*given):  # in place of `compare`, for runs whose end does not matter
    return Comparison({"ours": {}, "random": {}}, 0, "episodes", {})


def command_of(config, path, resume=False, **more):
    """What the user asks for with this configuration."""
    words = {"recipe": "ddpg_her", "preset": "laptop", "arguments": ("ddpg_her",)} | more
    return TrainCommand(config=config, run_dir=path, resume=resume, **words)


def run_session(command, warm_start=None, comm=None, episodes=4, callbacks=(), gpu=None):
    """Trains what `command` says in its run directory, to its end or its fault.

    The final table takes a few episodes, and TensorFlow keeps the threads that it has.
    """
    compare = session.compare
    with mock.patch.object(session, "compare", lambda *given: compare(*given, episodes)):
        comm = comm or Communicator()
        decisions = StartDecisions(command.run_dir, warm_start, claim=lambda: gpu)
        session.learn(command, comm, decisions, Drawing(math.inf), callbacks)


@contextlib.contextmanager
def stop_asked(looks):  # lets a run find the signal to stop from its look number `looks` on
    seen = itertools.count(1)
    with mock.patch.object(session, "stop_requested", side_effect=lambda: next(seen) >= looks):
        yield
