"""What a GPU does for learning, for whoever has one: `python -m experiments.gpu`.

Times all updates of a cycle as one XLA program for several numbers of rows, and sets a model
beside them: K kernels of 1.7 us, and 2.75 MFLOP a row. Then a learner with an actor on each other
core takes cycles beside as many equal ranks on cores alone. At last it trains a small
run twice and once more with a resume, and says whether the bits are the same. `--device cpu` tries
the program without a GPU: its times then say nothing about one.
"""

import argparse
import json
import os
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
from experiments.gpu_programs import kernels_of
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
OUT = Path(__file__).parent / "results" / "gpu.json"
_KERNEL_S, _FLOP_A_ROW, _FLOP_PER_S = 1.7e-6, 2.75e6, 30e12
"""Of a small kernel; of DDPG; and what single precision reaches. Both times fit DDPG on an H200
(results/gpu_programs.json): within 2 % at 256 rows, at 16,384 exactly, within a quarter in between.
Other recipes take up to twice as long."""
_CAPACITY = 100_000
_TINY = (
    *("train", "ddpg_her", "--env-id", "music_tf/PointPush-v0", "--workers", "2", "--cycles", "3"),
    *("--updates", "4", "--agent.hidden-sizes", "32", "32", "--evaluation.episodes", "4"),
)


def update_times(recipe: str, rows: int, quick: bool) -> dict[str, float]:
    """Returns milliseconds and kernels of an update of so many rows, and what the model says.

    `feed_ms` is for drawing and sending what all of them see, `host_feed_ms` for looking it up on
    the host too.
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


def _fastest(action: Callable[[], Any], rounds: int) -> float:
    """Returns the seconds of the fastest round."""
    return min(timeit.repeat(action, number=1, repeat=rounds))


def same_bits(device: str) -> dict[str, bool]:
    """Says whether a run repeats itself to the bit, and goes on to the same bits after a resume."""
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
    """Returns the milliseconds of a cycle by a learner with actors, and by equal ranks on cores."""
    actors = max(1, available_cores() - 1)

    def taken(ranks: int, *words: str) -> float:
        launch = [sys.executable, "-m", "music_tf", "launch", "-n", str(ranks)]
        return cycle_ms(launch, words, actors, quick)

    learner = ("--learners", "1", "--device", device)
    return {
        "actors": actors,
        "learner_lag_0_ms": taken(1 + actors, *learner),
        "learner_lag_1_ms": taken(1 + actors, *learner, "--lag", "1"),
        "equal_ranks_ms": taken(actors, "--device", "cpu"),
    }


def cycle_ms(launch: Sequence[str], words: Sequence[str], workers: int, quick: bool) -> float:
    """Trains `ddpg_her` on FetchPush for four epochs; returns the median of those but the first.

    Args:
        launch: What starts `music-tf launch` on some ranks.
        words: What tells them who learns, and on what.
        workers: Of the run, each with two rollouts a cycle.
        quick: Whether tiny sizes on a toy will do.

    Raises:
        EnvironmentFault: The run fails.
    """
    given, cycles = sizes_of(quick), 2 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        task = f"train ddpg_her --env-id {given.memory_env} --workers {workers} --rollouts 2"
        sizes = (
            f"--epochs 4 --cycles {cycles} --updates {given.updates} "
            f"--replay.batch-size {given.batch}"
        )
        said = [*task.split(), *sizes.split(), "--evaluation.episodes", "2", *words]
        done = run_command(
            [*launch, *said, "--run-dir", str(run)],
            seconds=900.0,
            environment={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        if not done.ok:
            raise EnvironmentFault(f"{' '.join(said)}\nfailed, code {done.code}: {done.reason}")
        rates = read_result(run / CSV_NAME).columns["time/updates_per_second"]
    return float(1e3 * given.updates / np.median(rates[1:]))


def main() -> None:
    """Measures everything and writes one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    parser.add_argument("--out", type=Path, default=OUT, help="file of results")
    given = parser.parse_args()
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = NO_GPU
    name = claim_gpu(needed=given.device == "gpu")
    found: dict[str, Any] = {"header": header(" ".join(sys.argv), 1, given.quick)}
    found["header"]["machine"]["gpu"] = name
    found["header"]["build"] = dict(tf.sysconfig.get_build_info())
    for recipe in RECIPES[:1] if given.quick else RECIPES:
        for rows in ROWS[:1] if given.quick else ROWS:
            found[f"{recipe}/{rows}"] = row = update_times(recipe, rows, given.quick)
            sys.stdout.write(f"{recipe} {rows} {row}\n")
    found["topologies"] = topologies(given.device, given.quick)
    sys.stdout.write(f"{found['topologies']}\n")
    found["same_bits"] = same_bits(given.device)
    sys.stdout.write(f"{found['same_bits']}\n")
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
