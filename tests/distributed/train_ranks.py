"""Trains a small run on the ranks of this job and writes what each of them ends with.

Usage: train_ranks.py FOLDER. Every rank writes FOLDER/RANKS_RANK.npz and .json.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np

from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from tests.training.small import EVERYTHING, HER, go_on, replay_state

CONFIG = dataclasses.replace(
    EVERYTHING, workers=4, cycles=4, updates=15, replay=HER.replay, epochs=1
)


def train(comm):
    """Returns a trainer after 60 updates, the replay of its first cycle, and its metrics."""
    from music_tf.training.trainer import Trainer

    trainer = Trainer(CONFIG, comm)
    first = {}

    def on_cycle(done):
        if done == 1:
            first.update(replay_state(trainer))
        return go_on(done)

    metrics = trainer.run_epoch(on_cycle)
    return trainer, first, metrics


def result_arrays(trainer, first):
    """Everything that is compared, by name; replay by worker."""
    last = replay_state(trainer)
    return {
        **trainer.arrays(),
        **{f"first/{w}/{n}": array for w, rows in first.items() for n, array in rows.items()},
        **{f"last/{w}/{n}": array for w, rows in last.items() for n, array in rows.items()},
    }


def perturbed(trainer, comm):
    """What the comparison says after the last rank has moved one weight by one ulp."""
    update = trainer.update
    values = update.parameters.numpy()
    position = update.layout.size - 20
    if comm.rank == comm.size - 1:
        values[position] = np.nextafter(values[position], np.float32(np.inf))
    update.parameters.assign(values)
    try:
        update.check_equal()
    except NumbersFault as fault:
        return [str(fault), update.layout.name_at(position)]
    return ["", ""]


def initial_with_other_seeds(comm):
    """Initial weights and targets where each rank has another seed."""
    from music_tf.training.trainer import Trainer

    trainer = Trainer(dataclasses.replace(CONFIG, seed=100 + comm.rank), comm)
    return np.concatenate([trainer.update.parameters.numpy(), trainer.update.targets.numpy()])


def main(folder):
    """Runs all of it."""
    comm = Communicator()
    trainer, first, metrics = train(comm)
    trainer.update.check_equal()
    arrays = result_arrays(trainer, first)
    arrays["initial"] = initial_with_other_seeds(comm)
    facts = {
        "counters": dataclasses.asdict(trainer.counters),
        "metrics": metrics,
        "perturbed": perturbed(trainer, comm),
        "heavy": "tensorflow_probability" in sys.modules,
    }
    name = f"{comm.size}_{comm.rank}"
    np.savez(folder / f"{name}.npz", **{key.replace("/", "|"): a for key, a in arrays.items()})
    (folder / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
