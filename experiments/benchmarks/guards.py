"""What the guards cost: cycles of two ranks with and without them by turns, in one run."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.learning import cycle_configuration
from benchmarks.sizes import Sizes
from music_tf import normalizer, rollout
from music_tf.distributed import Communicator
from music_tf.envs import lockstep
from music_tf.process import limit_threads, watchdog
from music_tf.training import update
from music_tf.training.build import build_trainer
from music_tf.training.trainer import Trainer


def measure(sizes: Sizes) -> dict[str, float]:
    """Trains DDPG with hindsight, one worker a rank; every rank must call it together.

    Guarded are actions, observations, rewards, losses, gradients, moments and the equality of
    ranks; the watchdog looks on during guarded cycles only.

    Returns:
        Seconds of a cycle with and without guards, and their ratio: medians over pairs of
        neighbouring cycles.
    """
    limit_threads(1)
    comm = Communicator()
    trainer = build_trainer(cycle_configuration(sizes, comm.size), comm)
    for _ in range(sizes.warm_cycles):
        trainer.run_cycle()
    pairs = []
    for number in range(2 * sizes.cycles):
        first, second = (_guarded, _unguarded) if number % 2 else (_unguarded, _guarded)
        seconds = {way: _timed(trainer, way, comm) for way in (first, second)}
        pairs.append((seconds[_guarded], seconds[_unguarded]))
    found = {
        "guarded_s": statistics.median(with_them for with_them, _ in pairs),
        "unguarded_s": statistics.median(without for _, without in pairs),
        "ratio": statistics.median(with_them / without for with_them, without in pairs),
    }
    return {name: _largest(comm, value) for name, value in found.items()} | {"ranks": comm.size}


Way = Callable[[], contextlib.AbstractContextManager[Any]]


def _timed(trainer: Trainer, way: Way, comm: Communicator) -> float:
    """Returns the seconds of a cycle on the slowest rank."""
    with way():
        comm.barrier()
        start = time.perf_counter()
        trainer.run_cycle()
        seconds = time.perf_counter() - start
    return _largest(comm, seconds)


def _largest(comm: Communicator, value: float) -> float:
    return float(comm.max_in_place(np.array([value]))[0])


def _guarded() -> contextlib.AbstractContextManager[Any]:
    return watchdog(300.0, "benchmark", None)


@contextlib.contextmanager
def _unguarded() -> Iterator[None]:
    """Switches all guards off."""

    def nothing(*arguments: Any) -> None:
        del arguments

    def fine(*arguments: Any) -> np.bool_:
        del arguments
        return np.True_

    with contextlib.ExitStack() as off:
        for owner, name, instead in (
            (lockstep, "all_finite", fine),
            (lockstep, "finite", fine),
            (normalizer, "all_finite", fine),
            (rollout, "heartbeat", nothing),
            (update, "heartbeat", nothing),
            (update.Update, "_check_finite", nothing),
            (update.Update, "check_equal", nothing),
            (Communicator, "together", lambda comm, action: action()),
        ):
            off.enter_context(mock.patch.object(owner, name, instead))
        yield
