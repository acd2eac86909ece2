"""Collectives over ranks: the only module that calls MPI, which a single process never loads."""

import contextlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from music_tf.errors import EXIT_DONE, EXIT_HANGING, EnvironmentFault, NoMpi, NumbersFault
from music_tf.process.children import PIP_INSTALL
from music_tf.process.launcher import (
    asked_world_size,
    launched_world_size,
    prove_end,
    workers_per_rank,
)

Scalar = TypeVar("Scalar", bound=np.generic)
Result = TypeVar("Result")

_FAREWELL_SECONDS = 60.0
_LOOK_SECONDS = 2e-4
"""Sleep between two polls of a request: a rank that waits does not occupy its core."""
_OTHERS_LEAVE_SECONDS = 1.0
"""How long the root waits before it ends with a fault: mpirun would report ranks still alive, and
on a busy machine they need this long to leave."""


class Communicator:
    """Collectives over ranks, and messages between two; every rank makes the same calls in order.

    With one process every operation returns what it was given. `take_timing` tells how long
    reductions took; broadcasts and exchanges of objects are not timed.
    """

    def __init__(self, alone: bool = False) -> None:
        """Joins the ranks that the launcher started, or stays by itself where it shall be alone.

        Raises:
            EnvironmentFault: MPI cannot be loaded, or sees another number of ranks than the
                launcher: mpirun and mpi4py then belong to different MPI libraries.
        """
        self._mpi: Any = None
        self._comm: Any = None
        self._seconds, self._calls, self._longest = 0.0, 0, 0.0
        wanted = 1 if alone else launched_world_size()
        if wanted > 1:
            try:
                from mpi4py import MPI  # noqa: PLC0415 - one process must not load MPI
            except (ImportError, RuntimeError) as error:
                raise NoMpi(
                    f"{wanted} ranks were started, but mpi4py cannot load an MPI library: {error}\n"
                    f"install both with: {PIP_INSTALL} 'music_tf[mpi]'"
                ) from error
            self._mpi, self._comm = MPI, MPI.COMM_WORLD
            if (seen := self._comm.Get_size()) != wanted:
                raise EnvironmentFault(
                    f"the launcher started {wanted} ranks, but mpi4py sees {seen}: mpirun and "
                    "mpi4py belong to different MPI libraries\n"
                    "use the mpirun of this environment: music-tf launch -n N train ..."
                )
        self.rank, self.size = self._place()
        self.hosts = self._hosts()
        """On which host each rank runs."""
        asked = None if alone else asked_world_size()
        if asked not in {None, self.size}:
            raise EnvironmentFault(
                f"{asked} ranks were asked for, but mpirun started {self.size}\n"
                "music-tf doctor looks for what is wrong with this mpirun"
            )

    def actors_here(self, learners: int) -> int:
        """Returns how many ranks that only act run on this rank's host, where the first learn."""
        return self.hosts[learners:].count(self.hosts[self.rank]) if learners else 0

    def group(self, role: int) -> "Communicator":
        """Splits ranks by role: update and reduction of learners need not meet the actors.

        Every rank must call it together, with a role of at least 0.

        Returns:
            The ranks of this one's role, in their order.
        """
        group = Communicator(alone=True)
        if self._comm is not None:
            group._mpi, group._comm = self._mpi, self._comm.Split(role, self.rank)
            group.rank, group.size = group._place()
            group.hosts = group._hosts()
        return group

    def _place(self) -> tuple[int, int]:
        """Returns the rank among how many."""
        return (0, 1) if self._comm is None else (self._comm.Get_rank(), self._comm.Get_size())

    def _hosts(self) -> list[str]:
        own = platform.node()
        return [own] if self._comm is None else list(self._comm.allgather(own))

    @property
    def is_root(self) -> bool:
        """Whether this rank prints, logs and writes checkpoints."""
        return self.rank == 0

    @property
    def library(self) -> str | None:
        """Name and version of the MPI library, to compare over ranks; None where none is loaded."""
        if self._comm is None:
            return None
        return str(self._mpi.Get_library_version().splitlines()[0])

    def exit_codes(self, code: int, seconds: float = _FAREWELL_SECONDS) -> list[int] | None:
        """Exchanges exit codes, so that ranks agree on one; None if a rank misses the timeout."""
        if self._comm is None:
            return [code]
        codes = np.zeros(self.size, np.int32)
        arrival = self._comm.Iallgather(np.asarray(code, np.int32), codes)
        end = time.monotonic() + seconds
        while not arrival.Test():
            if time.monotonic() > end:
                return None
            time.sleep(0.01)
        return codes.tolist()

    def local_workers(self, workers: int) -> range:
        """Shares out the workers evenly, and returns those that live on this rank.

        Raises:
            UsageError: The ranks do not divide the workers.
        """
        share = workers_per_rank(workers, self.size)
        return range(self.rank * share, (self.rank + 1) * share)

    def sum_in_place(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Replaces `values` by their sum over ranks, bit-identical on every rank."""
        return self._reduce(values, "SUM")

    def sum_into(self, values: npt.NDArray[Scalar], total: npt.NDArray[Scalar]) -> None:
        """Writes the sum of `values` over ranks into `total`, bit-identical on every rank."""
        if self._comm is None:
            np.copyto(total, values)
        else:
            with self._timed():
                self._comm.Allreduce(values, total)

    def max_in_place(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Replaces `values` by their element-wise maximum over ranks."""
        return self._reduce(values, "MAX")

    def any(self, flag: bool) -> bool:
        """Returns on every rank whether `flag` is set on any of them."""
        return bool(self.max_in_place(np.array([int(flag)]))[0])

    def broadcast(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Overwrites `values` on every rank with the root's."""
        if self._comm is not None:
            self._comm.Bcast(values, root=0)
        return values

    def broadcast_object(self, value: Any) -> Any:
        """Returns the root's JSON-like `value` on every rank; for start-up, never per update."""
        return value if self._comm is None else self._comm.bcast(value, root=0)

    def allgather(self, value: Any) -> list[Any]:
        """Returns the JSON-like values of all ranks, in their order; never per update."""
        return [value] if self._comm is None else list(self._comm.allgather(value))

    def together(self, action: Callable[[], Result]) -> Result:
        """Runs an action on every rank; if any rank fails, all ranks raise.

        Without it the ranks that succeed would wait for ever in the next collective. Each rank
        gets the result of its own action.

        Raises:
            NumbersFault: On every rank, if the action raised it on any.
        """
        fault: NumbersFault | None = None
        try:
            result = action()
        except NumbersFault as found:
            fault = found
        texts = self.allgather(None if fault is None else str(fault))
        bad = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text is not None]
        if bad:
            raise fault or NumbersFault(bad[0])
        return result

    def barrier(self) -> None:
        """Waits until every rank has called it."""
        if self._comm is not None:
            self._comm.Barrier()

    def patient_barrier(self) -> None:
        """A barrier that sleeps while it waits: other processes have the core."""
        if self._comm is not None:
            self._patiently(self._comm.Ibarrier())

    def patient_broadcast(self, data: npt.NDArray[np.uint8]) -> None:
        """A broadcast of bytes that sleeps while it waits: other processes have the core."""
        if self._comm is not None:
            self._patiently(self._comm.Ibcast(data, root=0))

    def send(self, data: npt.NDArray[np.uint8], to: int) -> None:
        """Sends bytes to a rank; returns once `data` may be overwritten."""
        self._patiently(self._comm.Isend(data, to))

    def receive(self, source: int) -> npt.NDArray[np.uint8]:
        """Waits for bytes of a rank, asleep meanwhile: other processes have the core."""
        status = self._mpi.Status()
        while (message := self._comm.Improbe(source, status=status)) is None:
            time.sleep(_LOOK_SECONDS)
        data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        self._patiently(message.Irecv(data))
        return data

    def _patiently(self, request: Any) -> None:
        while not request.Test():
            time.sleep(_LOOK_SECONDS)

    def take_timing(self) -> tuple[float, float]:
        """Measures waiting: (mean, longest) milliseconds of a reduction since the last call."""
        mean = 1e3 * self._seconds / max(1, self._calls)
        longest = 1e3 * self._longest
        self._seconds, self._calls, self._longest = 0.0, 0, 0.0
        return mean, longest

    def abort(self, code: int) -> NoReturn:
        """Ends the whole job at once, from any rank."""
        _flush()
        if self._comm is not None:
            self._comm.Abort(code)
        os._exit(code)

    def finish(self, code: int) -> NoReturn:
        """Leaves with an exit code that all ranks agreed on.

        Under Open MPI the others leave with 0 and the root a moment later with `code`. So the
        launcher reports the code and not an abort; MPICH wants the same code from all. A rank that
        never comes is not waited for.
        """
        _flush()
        if self._comm is not None:
            if self.exit_codes(code) is None:
                self.abort(EXIT_HANGING)
            root_alone_tells = "Open MPI" in self._mpi.Get_library_version()
            if not self._mpi.Is_finalized():
                self._mpi.Finalize()
            if root_alone_tells:
                if not self.is_root:
                    os._exit(EXIT_DONE)
                if code != EXIT_DONE:
                    time.sleep(_OTHERS_LEAVE_SECONDS)
            if self.is_root:
                prove_end(code)
        os._exit(code)

    def _reduce(self, values: npt.NDArray[Scalar], operation: str) -> npt.NDArray[Scalar]:
        if self._comm is not None:
            with self._timed():
                self._comm.Allreduce(self._mpi.IN_PLACE, values, op=getattr(self._mpi, operation))
        return values

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self._seconds += seconds
        self._calls += 1
        self._longest = max(self._longest, seconds)


def _flush() -> None:
    """Writes out what was printed; a full disk or a reader that went away does not matter."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
