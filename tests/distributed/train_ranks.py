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
from tests.kit.small import EVERYTHING, HER, go_on, replay_state

CONFIG = dataclasses.replace(
    EVERYTHING,
    seed=11,  # two of four workers touch the object in their first episodes
    workers=4,
    cycles=1,
    updates=60,
    replay=dataclasses.replace(HER.replay, priority="music"),
    epochs=1,
)
REACH = dataclasses.replace(
    HER, env_id="music_tf/PointReach-v0", workers=4, cycles=4, updates=10, epochs=1
)


def train(comm):
    """Returns a trainer after a cycle of 60 updates, with the cycle's metrics.

    Its episodes are played by the initial weights, so that they are the same on any number of
    ranks; later ones would feel the rounding of sums, and contacts amplify it.
    """
    from music_tf.training.build import build_trainer

    trainer = build_trainer(CONFIG, comm)
    seen = []

    def on_cycle(done):
        seen.extend(trainer.log.totals)
        return go_on(done)

    trainer.run_epoch(on_cycle)
    return trainer, seen[0]


def reach(comm, lag):
    """A trainer after four cycles of 10 updates where nothing is touched: no chaos there."""
    from music_tf.training.build import build_trainer

    trainer = build_trainer(dataclasses.replace(REACH, lag=lag), comm)
    trainer.run_epoch(go_on)
    return trainer


def named_replay(prefix, rows_by_worker):  # replay rows under names such as `first/3/action`
    return {
        f"{prefix}/{worker}/{name}": array
        for worker, rows in rows_by_worker.items()
        for name, array in rows.items()
    }


def disturbed(trainer, comm):
    """What the comparison says of arrays that the last rank moved by one ulp, by their names."""
    arrays = {name: np.copy(array) for name, array in trainer.shared().items()}
    meta, texts = json.loads(json.dumps(trainer.meta())), {}
    for name in (*{name.split("/")[0]: name for name in arrays}.values(), "normalizer/observation"):
        moved = np.copy(arrays[name])
        if comm.rank == comm.size - 1:
            moved.flat[-1] = np.nextafter(moved.flat[-1], np.inf, dtype=moved.dtype)
        trainer.load(arrays | {name: moved}, meta)
        try:
            trainer.check_equal()
        except NumbersFault as fault:
            texts[name] = str(fault)
    trainer.load(arrays, meta)
    return texts


def initial_with_other_seeds(comm):  # initial weights and targets where each rank has another seed
    from music_tf.training.build import build_trainer

    trainer = build_trainer(dataclasses.replace(CONFIG, seed=100 + comm.rank), comm)
    return np.concatenate([trainer.update.parameters.numpy(), trainer.update.targets.numpy()])


def learners(comm):
    """Sums the numbers of the ranks that learn, the first half, and of the others by themselves."""
    group = comm.group(int(comm.rank >= comm.size / 2))
    total = int(group.sum_in_place(np.array([comm.rank]))[0])
    return {"rank": group.rank, "size": group.size, "total": total, "root": group.is_root}


def main(folder):
    comm = Communicator()
    trainer, metrics = train(comm)
    trainer.update.check_equal()
    trainer.check_equal()
    touchless = [reach(comm, lag) for lag in (0, 1)]
    arrays = {
        **{
            f"reach_{lag}/{name}": array
            for lag, one in enumerate(touchless)
            for name, array in one.shared().items()
        },
        **named_replay("reaching_0", replay_state(touchless[0])),
        **named_replay("reaching_1", replay_state(touchless[1])),
        **trainer.shared(),
        **named_replay("touching", replay_state(trainer)),
        "initial": initial_with_other_seeds(comm),
    }
    facts = {
        "counters": dataclasses.asdict(trainer.counters),
        "metrics": metrics,
        "disturbed": disturbed(trainer, comm),
        "learners": learners(comm),
        "heavy": "tensorflow_probability" in sys.modules,
    }
    name = f"{comm.size}_{comm.rank}"
    np.savez(folder / f"{name}.npz", **{key.replace("/", "|"): a for key, a in arrays.items()})
    (folder / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
