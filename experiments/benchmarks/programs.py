"""Whole programs as a user starts them: time to help, to the first step, and memory of a rank."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.sizes import Sizes
from music_tf.errors import EnvironmentFault

_KIB_PER_MB = 1024.0


def command(*words: str) -> list[str]:
    """Returns `music-tf WORDS`: the script beside this interpreter, else the module."""
    script = Path(sys.executable).parent / "music-tf"
    start = [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "music_tf"]
    return [*start, *words]


def measure_help() -> dict[str, float]:
    """Times `music-tf --help` from start to end."""
    start = time.monotonic()
    run(command("--help"))
    return {"seconds": time.monotonic() - start}


def train_until_first_step(out: Path) -> NoReturn:
    """Trains, and ends the process at the first environment step with the time of the clock."""
    from music_tf.cli import main  # noqa: PLC0415 - its imports belong to what is timed
    from music_tf.envs.lockstep import LockstepEnvs  # noqa: PLC0415

    def step(*arguments: Any) -> NoReturn:
        del arguments
        out.write_text(str(time.monotonic()))
        os._exit(0)

    LockstepEnvs.step = step  # type: ignore[method-assign,assignment]
    with tempfile.TemporaryDirectory() as folder:
        main(["train", "ddpg_her", "--env-id", "FetchPush-v4", "--run-dir", f"{folder}/run"])


def measure_memory(sizes: Sizes) -> dict[str, float]:
    """Trains on two ranks and returns the peak resident memory of the larger one, in MB.

    Must be the first thing a process does with children: the system keeps one peak of them all.
    """
    with tempfile.TemporaryDirectory() as folder:
        run(
            command(
                *("launch", "-n", "2", "train", "ddpg_music", "--env-id", sizes.memory_env),
                *("--epochs", "1", "--cycles", str(sizes.memory_cycles)),
                *("--evaluation.episodes", "2", "--run-dir", f"{folder}/run"),
            )
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"mb": peak / _KIB_PER_MB}


def run(words: list[str]) -> None:
    """Runs a program in silence.

    Raises:
        EnvironmentFault: It failed.
    """
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"{' '.join(words)}\nfailed with code {done.returncode}: {last}")
