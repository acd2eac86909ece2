"""Measures learning on a GPU: `python -m experiments.gpu`.

It times all updates of a cycle as one XLA program for several batch sizes, and compares them with a
model: K kernels of 1.7 us, and 2.75 MFLOP per row. Then it compares cycles of a learner on the GPU,
with an actor on each other core, with those of equal ranks on cores alone. Finally it trains a
small run twice, and once with a resume, and reports whether the results are bit-equal. With
`--device cpu` it runs without a GPU, and its times are meaningless.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")

import numpy as np
import tensorflow as tf

from experiments.benchmark import FULL, QUICK, header, sizes_of
from experiments.measure import configuration, fed, filled_trainer
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault
from music_tf.process.children import run_command
from music_tf.process.machine import available_cores
from music_tf.process.tensorflow_start import NO_GPU, claim_gpu
from music_tf.storage.checkpoint import newest_weights
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import read_result

RECIPES = ("ddpg_her", "ddpg_music", "sac_her")
ROWS = (256, 1024, 4096, 16384)
PARTS = ("updates", "topologies", "same_bits")
OUT = Path(__file__).parent / "results" / "gpu.json"
_KERNEL_S, _FLOP_A_ROW, _FLOP_PER_S = 1.7e-6, 2.75e6, 30e12
"""Time of a small kernel, operations of DDPG per row, and single-precision rate. The model fits
DDPG on an H200 (results/gpu_programs.json): within 2 % at 256 rows, exactly at 16,384, within a
quarter in between. Other recipes take up to twice as long."""
_CAPACITY = 100_000
_TINY = (
    *("train", "ddpg_her", "--env-id", "music_tf/PointPush-v0", "--workers", "2", "--cycles", "3"),
    *("--updates", "4", "--agent.hidden-sizes", "32", "32", "--evaluation.episodes", "4"),
)


def update_times(recipe: str, rows: int, quick: bool) -> dict[str, float]:
    """Returns milliseconds and kernels of an update of `rows` rows, and the model's time.

    `feed_ms` is for drawing indices of all updates, `host_feed_ms` for looking up the batches on
    the host as well. Sending them to the GPU counts in `update_ms`.
    """
    sizes = dict(vars(QUICK if quick else FULL))
    trainer = filled_trainer(
        configuration(recipe, sizes, {"replay.batch_size": rows, "replay.capacity": _CAPACITY}),
        sizes,
        Communicator(),
    )
    host_feed_s = _fastest(lambda: fed(trainer), sizes["rounds"])
    trainer.update.use_xla()
    trainer.copy_replay()
    feed, schedules = trainer.feed(), trainer.schedules()
    trainer.update.run(feed, schedules)  # compiles
    update_s = _fastest(lambda: trainer.update.run(feed, schedules), sizes["rounds"])
    kernels = kernels_of(trainer.update.hlo(feed, schedules))
    model = kernels * _KERNEL_S + rows * _FLOP_A_ROW / _FLOP_PER_S
    return {
        "update_ms": 1e3 * update_s / sizes["updates"],
        "feed_ms": 1e3 * _fastest(lambda: fed(trainer), sizes["rounds"]),
        "host_feed_ms": 1e3 * host_feed_s,
        "kernels": kernels,
        "model_ms": 1e3 * model,
    }


def kernels_of(hlo: str) -> int:
    """Returns the number of products and fusions with one result, about that of the kernels."""
    return len(re.findall(r"= \S+ (?:fusion|dot|custom-call)\(", hlo))


def _fastest(action: Callable[[], Any], rounds: int) -> float:
    """Returns the seconds of the fastest round."""
    return min(timeit.repeat(action, number=1, repeat=rounds))


def same_bits(device: str) -> dict[str, bool]:
    """Returns whether a repeated run is bit-equal, and whether a resumed one is."""
    with tempfile.TemporaryDirectory() as folder:

        def state(name: str, *more: str) -> dict[str, np.ndarray]:
            words = [*_TINY, "--run-dir", f"{folder}/{name}", "--device", device]
            if "--resume" in more:
                words = ["train", "--run-dir", f"{folder}/{name}", "--device", device]
            subprocess.run([sys.executable, "-m", "music_tf", *words, *more], check=True)
            return dict(newest_weights(Path(folder, name, "checkpoints")).arrays)

        first, again = state("first", "--epochs", "2"), state("again", "--epochs", "2")
        state("cut", "--epochs", "1")
        resumed = state("cut", "--epochs", "2", "--resume")
    return {
        name: all(np.array_equal(array, first[key]) for key, array in other.items())
        for name, other in (("two_runs", again), ("resumed", resumed))
    }


def topologies(device: str, quick: bool) -> dict[str, float]:
    """Returns milliseconds of a cycle of a learner with actors, and of equal ranks on cores."""
    actors = max(1, available_cores() - 1)

    def measured_ms(ranks: int, *words: str) -> float:
        launch = [sys.executable, "-m", "music_tf", "launch", "-n", str(ranks)]
        return cycle_ms(launch, words, actors, quick)

    learner = ("--learners", "1", "--device", device)
    return {
        "actors": actors,
        "learner_lag_0_ms": measured_ms(1 + actors, *learner),
        "learner_lag_1_ms": measured_ms(1 + actors, *learner, "--lag", "1"),
        "equal_ranks_ms": measured_ms(actors, "--device", "cpu"),
    }


def cycle_ms(launch: Sequence[str], words: Sequence[str], workers: int, quick: bool) -> float:
    """Trains `ddpg_her` on FetchPush for four epochs; returns the median time without the first.

    Args:
        launch: The command `music-tf launch` with a number of ranks.
        words: Options for the learners and the device.
        workers: Of the run, each with two rollouts per cycle.
        quick: Whether to use tiny sizes on a toy.
    """
    scale, cycles = sizes_of(quick), 2 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        task = f"train ddpg_her --env-id {scale.memory_env} --workers {workers} --rollouts 2"
        sizes = f"--cycles {cycles} --updates {scale.updates} --replay.batch-size {scale.batch}"
        train = [*f"{task} {sizes} --epochs 4 --evaluation.episodes 2".split(), *words]
        done = run_command(
            [*launch, *train, "--run-dir", str(run)],
            seconds=900.0,
            environment={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        if not done.ok:
            raise EnvironmentFault(f"{' '.join(train)}\nfailed, code {done.code}: {done.reason}")
        rates = read_result(run / CSV_NAME).columns["time/updates_per_second"]
    return float(1e3 * scale.updates / np.median(rates[1:]))


def main() -> None:
    """Measures the parts and writes one file, anew after each of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    parser.add_argument("--out", type=Path, default=OUT, help="file of results")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="in this order")
    parser.add_argument("--recipes", nargs="+", default=RECIPES, help="of the updates")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, help="of an update")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = NO_GPU
    name = claim_gpu(needed=options.device == "gpu")
    record: dict[str, Any] = {"header": header(" ".join(sys.argv), 1, options.quick)}
    record["header"]["machine"]["gpu"] = name
    record["header"]["build"] = dict(tf.sysconfig.get_build_info())

    def measured(key: str, value: dict[str, Any]) -> None:
        record[key] = value
        sys.stdout.write(f"{key} {value}\n")
        sys.stdout.flush()
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    for part in options.parts:
        try:
            if part == "topologies":
                measured(part, topologies(options.device, options.quick))
            elif part == "same_bits":
                measured(part, same_bits(options.device))
            else:
                for recipe, rows in itertools.product(options.recipes, options.rows):
                    measured(f"{recipe}/{rows}", update_times(recipe, rows, options.quick))
        except (EnvironmentFault, subprocess.CalledProcessError, tf.errors.OpError) as error:
            measured(f"failed/{part}", {"error": str(error)})  # the other parts are still wanted
    sys.exit(int(any(key.startswith("failed/") for key in record)))


if __name__ == "__main__":
    main()
