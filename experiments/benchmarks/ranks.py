"""Training cycles of two ranks, and the share of them that is MPI's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.learning import cycle_configuration
from benchmarks.sizes import Sizes
from music_tf.distributed import Communicator
from music_tf.process import limit_threads
from music_tf.training.build import build_trainer

Scalar = TypeVar("Scalar", bound=np.generic)


class TimedCommunicator(Communicator):
    """Adds up the seconds inside and waiting for collectives, of which none calls another."""

    def __init__(self) -> None:
        super().__init__()
        self.spent_s = 0.0

    def sum_in_place(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Sums, timed."""
        with self._timed():
            return super().sum_in_place(values)

    def sum_into(self, values: npt.NDArray[Scalar], total: npt.NDArray[Scalar]) -> None:
        """Sums, timed."""
        with self._timed():
            super().sum_into(values, total)

    def max_in_place(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Takes the maximum, timed; `any` comes here too."""
        with self._timed():
            return super().max_in_place(values)

    def broadcast(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Broadcasts, timed."""
        with self._timed():
            return super().broadcast(values)

    def share(self, value: Any) -> Any:
        """Shares, timed."""
        with self._timed():
            return super().share(value)

    def collect(self, value: Any) -> list[Any]:
        """Collects, timed."""
        with self._timed():
            return super().collect(value)

    def barrier(self) -> None:
        """Waits, timed."""
        with self._timed():
            super().barrier()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spent_s += time.perf_counter() - start


REDUCED = (2, 280_000)
"""Float32 numbers of the reductions that are timed: next to none, and the networks of DDPG."""
_CALLS = 200


def measure_reductions(sizes: Sizes) -> dict[str, float]:
    """Times the all-reduce alone, of a few bytes and of all networks; ranks call it together.

    Returns:
        Milliseconds of each, the median of the slowest rank.
    """
    del sizes
    comm = Communicator()
    found: dict[str, float] = {"ranks": comm.size}
    for numbers in REDUCED:
        own, total = np.ones(numbers, np.float32), np.empty(numbers, np.float32)
        times = []
        for _ in range(_CALLS):
            comm.barrier()
            start = time.perf_counter()
            comm.sum_into(own, total)
            times.append(time.perf_counter() - start)
        median = comm.max_in_place(np.array([np.median(times)]))
        found[f"reduce_{numbers}_ms"] = 1e3 * float(median[0])
    return found


def measure(sizes: Sizes) -> dict[str, float]:
    """Trains DDPG with hindsight, one worker a rank; every rank must call it together.

    Returns:
        Seconds of a cycle, and the share of MPI on the rank where it is largest.
    """
    limit_threads(1)
    comm = TimedCommunicator()
    cycles = sizes.warm_cycles + sizes.cycles
    config = cycle_configuration(sizes, comm.size, cycles=cycles, evaluation__every=10**6)
    trainer = build_trainer(config, comm)
    marks: list[tuple[float, float]] = []

    def note(done: int) -> bool:
        del done
        marks.append((time.perf_counter(), comm.spent_s))
        return False

    trainer.run_epoch(note)
    first, last = marks[sizes.warm_cycles - 1], marks[-1]
    elapsed, spent = last[0] - first[0], last[1] - first[1]
    found = comm.max_in_place(np.array([elapsed / sizes.cycles, spent / elapsed]))
    return {"cycle_s": float(found[0]), "mpi_share": float(found[1]), "ranks": comm.size}
