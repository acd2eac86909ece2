"""Trains real networks on the ranks of this job, and puts bad numbers into rank 1 on the way.

Usage: poison.py FOLDER. Every rank writes FOLDER/RANK.json: how the run of each way ended.
"""

import json
import os
import sys
from pathlib import Path

from music_tf.config.terms import TaskConfig
from tests.kit.small import SMALL_MUSIC, paying

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np

from music_tf.distributed import Communicator
from music_tf.errors import MusicError
from music_tf.intrinsic.music import Music
from music_tf.networks.acting import Snapshot
from music_tf.normalizer import Normalizer
from music_tf.replay.buffer import ReplayBuffer
from tests.kit.sessions import command_of, run_session
from tests.kit.small import MUSIC

RANK = 1
CONFIG = paying(MUSIC, TaskConfig(), SMALL_MUSIC, epochs=3, rollouts=1, updates=2)
"""Two cycles an epoch; what is poisoned below is called once in each, or as often as said."""


def spoil_action(result):
    result[0] = np.nan
    return result


def spoil_reward(result):
    result.reward[0, 0, 0] = np.nan
    return result


def spoil_trajectories(result):
    result["trajectories"][0, 0, 0] = np.nan
    return result


def spoil_rows(self, rows, workers):
    rows[0, 0] = np.nan


def spoil_gradient(self, values, total):
    values[5] = np.inf


WAYS = {
    "action": (Snapshot, "act", None, spoil_action),
    "reward": (ReplayBuffer, "transitions", None, spoil_reward),
    "trajectory": (Music, "feed", None, spoil_trajectories),
    "normalizer": (Normalizer, "update", spoil_rows, None),
    "gradient": (Communicator, "sum_into", spoil_gradient, None),
}
"""Class and method, what is done to its arguments, what to its result."""


def poisoned(owner, name, before, after, calls):
    """Poisons the given calls of a method on one rank; returns what undoes it."""
    original = getattr(owner, name)
    seen = []

    def method(self, *arguments):
        seen.append(1)
        strikes = len(seen) in calls
        if strikes and before:
            before(self, *arguments)
        result = original(self, *arguments)
        return after(result) if strikes and after else result

    setattr(owner, name, method)
    return lambda: setattr(owner, name, original)


def calls_in(cycle, way):  # the number of the first call of a way in a cycle, cycles counted from 1
    a_cycle = {"action": 30, "gradient": CONFIG.updates, "normalizer": 2}.get(way, 1)
    evaluations = 30 * 2 if way == "action" else 0  # rank 1 plays 2 of 5 episodes
    return (cycle - 1) * a_cycle + evaluations * ((cycle - 1) // CONFIG.cycles) + 1


def train(path, comm):  # trains and returns the exit code and the message
    try:
        run_session(command_of(CONFIG, path, recipe="ddpg_music"), comm=comm)
    except MusicError as fault:
        return fault.exit_code, str(fault)
    return 0, ""


def main(folder):
    comm = Communicator()
    results = {}
    for way, (owner, name, before, after) in WAYS.items():
        calls = {calls_in(4, way)} if comm.rank == RANK else set()
        undo = poisoned(owner, name, before, after, calls)
        results[way] = train(folder / way, comm)
        undo()
    always = set(range(1, 10**6)) if comm.rank == RANK else set()
    undo = poisoned(*WAYS["reward"], always)
    results["always"] = train(folder / "always", comm)
    undo()
    (folder / f"{comm.rank}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
