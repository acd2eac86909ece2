"""Run directories: made without training, and read."""

import csv
import dataclasses
import json
import math
from pathlib import Path

from music_tf import recipes
from music_tf.config.conditioning import ConditionConfig
from music_tf.distributed import Communicator
from music_tf.reading.stored import StoredRun, run_to_json
from music_tf.storage.checkpoint import Checkpoints, newest_weights
from music_tf.training.build import build_trainer
from tests.kit.small import TIMES

ENV_ID = "music_tf/PointPush-v0"
CLOCKS = (*sorted(TIMES), "mpi/")
"""How columns begin that no two runs have alike."""


def small_config(recipe="ddpg", env_id=ENV_ID, **changes):
    config = recipes.resolve(recipe)
    agent = dataclasses.replace(config.agent, hidden_sizes=(8, 8))
    small = {"env_id": env_id, "workers": 1, "rollouts": 4, "agent": agent}
    return dataclasses.replace(config, **{**small, **changes})


def along(kind, size=None, speed=math.inf):  # changes of a recipe for METRA, as of its conditions
    distance = recipes.resolve("sac_metra").rewards["distance"]
    paid = {"distance": dataclasses.replace(distance, speed=speed)}
    return {"condition": ConditionConfig(kind=kind, size=size), "rewards": paid}


def in_a_ball(size):  # those under which conditions are velocities
    return along("ball", size, speed=0.4)


def write_config(path, config, recipe="ddpg"):
    path.mkdir(parents=True, exist_ok=True)
    stored = StoredRun(recipe, "laptop", (), config)
    (path / "config.json").write_text(json.dumps(run_to_json(stored)))


def save_checkpoint(path, trainer, epoch=1):
    trainer.counters.epoch, trainer.counters.env_steps = epoch, 100 * epoch
    rows = {"worker_0000": trainer.replay.unsaved()[0]}
    assert Checkpoints(path / "checkpoints", Communicator()).save(
        epoch, trainer.shared(), rows, trainer.meta()
    )


def damage(path, label):  # flips the last bit of a checkpoint's arrays
    file = path / "checkpoints" / label / "state.npz"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def load_weights(path):  # arrays and meta values of the newest checkpoint in a folder
    found = newest_weights(path)
    return found.arrays, found.meta


def rows_of(run, without=CLOCKS):
    """The rows of its table of metrics, without columns that begin so; none without a table."""
    try:
        with (Path(run) / "metrics.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return []
    return [{n: cell for n, cell in row.items() if not n.startswith(without)} for row in rows]


def save_run(path, recipe="ddpg", **changes):
    """Writes a run with random weights and returns the trainer that holds them."""
    config = small_config(recipe, **changes)
    write_config(path, config, recipe)
    trainer = build_trainer(config, Communicator())
    save_checkpoint(path, trainer)
    return trainer
