"""Collective operations over ranks: the only module that calls MPI; one process never loads it."""

import contextlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

from music_tf import errors
from music_tf.process import launcher
from music_tf.process.children import PIP_INSTALL

Scalar = TypeVar("Scalar", bound=np.generic)
Result = TypeVar("Result")

_LOOK_SECONDS = 2e-4
"""Sleep between two polls of a request, so that a waiting rank does not occupy its core."""
_LAUNCHER_SECONDS = 10.0
"""Within this time the launcher ends the ranks of a job that is to end."""


class Communicator:
    """Collective operations over ranks, which all must make in the same order."""

    def __init__(self, alone: bool = False) -> None:
        """Joins all ranks that the launcher started, or with `alone` is a group of one rank."""
        self._mpi: Any = None
        self._comm: Any = None
        self._seconds, self._calls, self._longest = 0.0, 0, 0.0
        wanted = 1 if alone else launcher.launched_world_size()
        if wanted > 1:
            try:
                from mpi4py import MPI  # noqa: PLC0415 - one process must not load MPI
            except (ImportError, RuntimeError) as error:
                raise errors.NoMpi(
                    f"{wanted} ranks were started, but mpi4py cannot load an MPI library: {error}\n"
                    f"install both in this environment: {PIP_INSTALL} 'music_tf[mpi]'"
                ) from error
            self._mpi, self._comm = MPI, MPI.COMM_WORLD
            if (seen := self._comm.Get_size()) != wanted:
                raise errors.EnvironmentFault(
                    f"the launcher started {wanted} ranks, but mpi4py sees {seen}: mpirun and "
                    "mpi4py belong to different MPI libraries\n"
                    "use the mpirun of this environment: music-tf launch -n N train ..."
                )
        self.rank, self.size = self._place()
        self._meet(self.rank)
        wanted_ranks = None if alone else launcher.number_in(launcher.ASKED_VARIABLE)
        if wanted_ranks not in {None, self.size}:
            raise errors.EnvironmentFault(
                f"{wanted_ranks} ranks were asked for, but mpirun started {self.size}\n"
                "music-tf doctor looks for what is wrong with this mpirun"
            )

    def actors_here(self, learners: int) -> int:
        """Returns the number of actors on this rank's host; the first `learners` ranks learn."""
        return self.hosts[learners:].count(self.hosts[self.rank]) if learners else 0

    def group(self, role: int) -> "Communicator":
        """Returns the ranks of this rank's role, an index from 0, in order; a collective call."""
        group = Communicator(alone=True)
        if self._comm is not None:
            group._mpi, group._comm = self._mpi, self._comm.Split(role, self.rank)
            group.rank, group.size = group._place()
            group._meet(self.rank)
        return group

    def _place(self) -> tuple[int, int]:
        return (0, 1) if self._comm is None else (self._comm.Get_rank(), self._comm.Get_size())

    def _meet(self, number: int) -> None:
        """Learns of each rank its number among all, its host and its process."""
        members = self.allgather((number, platform.node(), os.getpid()))
        self.numbers, self.hosts, self.processes = zip(*members, strict=True)

    @property
    def is_root(self) -> bool:
        return self.rank == 0

    @property
    def library(self) -> str | None:
        """Name and version of the MPI library; None if none is loaded."""
        return None if self._comm is None else str(self._mpi.Get_library_version().splitlines()[0])

    def exit_codes(self, code: int, seconds: float = 60.0) -> list[int] | None:
        """Returns the exit codes of all ranks, 0 of lost ones; None if one misses the timeout."""
        if self._comm is None:
            return [code]
        comm, codes = self._comm, dict[int, int]()

        def gather() -> None:
            while not codes:  # once more if another rank is lost meanwhile
                time.sleep(0.01)
                with contextlib.suppress(self._mpi.Exception):
                    # without it collective calls fail
                    left = comm.Shrink() if launcher.is_elastic() else comm
                    pairs = np.zeros([left.Get_size(), 2], np.int32)
                    arrival = left.Iallgather(np.array([self.rank, code], np.int32), pairs)
                    while not arrival.Test():
                        time.sleep(0.01)
                    codes.update(pairs.tolist())

        gathers = threading.Thread(target=gather, daemon=True)
        gathers.start()  # `Ishrink` of Open MPI 5.0 fails when it is tested
        gathers.join(seconds)
        return [codes.get(rank, errors.EXIT_DONE) for rank in range(self.size)] if codes else None

    def loss_in(self, error: BaseException) -> errors.RankLost | None:
        """Returns what an error says of a lost rank, also from within TensorFlow; None: nothing."""
        if isinstance(error, errors.RankLost):
            return error
        lost = any(name in str(error) for name in ("MPI_ERR_PROC_FAILED", "MPI_ERR_REVOKED"))
        return errors.RankLost("a rank was lost") if lost and launcher.is_elastic() else None

    def local_workers(self, workers: int) -> range:
        """Returns the workers of this rank; refuses workers that ranks cannot share evenly."""
        share = launcher.workers_per_rank(workers, self.size)
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
        return self._reduce(values, "MAX")

    def any(self, flag: bool) -> bool:
        return bool(self.max_in_place(np.array([int(flag)]))[0])

    def broadcast(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        if self._comm is not None:
            self._comm.Bcast(values, root=0)
        return values

    def broadcast_object(self, value: Any) -> Any:
        """Returns the root's JSON-like `value` on every rank; for start-up, never per update."""
        return value if self._comm is None else self._comm.bcast(value, root=0)

    def from_root(self, action: Callable[[], Result]) -> Result:
        """Runs an action on the root; all return its JSON-like result or raises its fault."""
        result, text, code = None, "", errors.EXIT_DONE
        if self.is_root:
            try:
                result = action()
            except errors.MusicError as fault:
                text, code = str(fault), fault.exit_code
        result, text, code = self.broadcast_object((result, text, code))
        if code != errors.EXIT_DONE:
            raise errors.fault_of(code)(text)
        return cast(Result, result)

    def allgather(self, value: Any) -> list[Any]:
        """Returns the JSON-like values of all ranks, in their order; never per update."""
        return [value] if self._comm is None else list(self._comm.allgather(value))

    def together(self, action: Callable[[], Result]) -> Result:
        """Runs an action on every rank; if any fails, all raise, as others would wait for ever."""
        fault: errors.NumbersFault | None = None
        try:
            result = action()
        except errors.NumbersFault as raised:
            fault = raised
        texts = self.allgather(None if fault is None else str(fault))
        bad = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text is not None]
        if bad:
            raise fault or errors.NumbersFault(bad[0])
        return result

    def barrier(self) -> None:
        if self._comm is not None:
            self._comm.Barrier()

    def patient_barrier(self) -> None:
        """Waits at a barrier asleep, so that other processes can use the core."""
        if self._comm is not None:
            self._patiently(self._comm.Ibarrier())

    def begin_send(self, data: npt.NDArray[np.uint8], to: int) -> Callable[..., bool]:
        """Begins to send bytes; returns what waits, or only looks, until `data` is free again."""
        with self._losing(to):
            request = self._comm.Isend(data, to)

        def finish(wait: bool = True) -> bool:
            with self._losing(to):
                if wait:
                    self._patiently(request)
                return bool(request.Test())

        return finish

    def receive(self, source: int) -> npt.NDArray[np.uint8]:
        """Returns the next bytes from a rank, and waits asleep."""
        while (data := self.received(source)) is None:
            time.sleep(_LOOK_SECONDS)
        return data

    def received(self, source: int) -> npt.NDArray[np.uint8] | None:
        """Returns the next bytes from a rank, or None if none have come; RankLost if it is gone."""
        status = self._mpi.Status()
        with self._losing(source):
            message = self._comm.Improbe(source, status=status)
            if message is None:
                return None
            data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
            self._patiently(message.Irecv(data))
            return data

    @contextlib.contextmanager
    def _losing(self, rank: int) -> Iterator[None]:
        try:
            yield
        except self._mpi.Exception as error:
            if error.Get_error_class() != self._mpi.ERR_PROC_FAILED:
                raise
            number, host = self.numbers[rank], self.hosts[rank]
            raise errors.RankLost(f"rank {number} on {host} was lost") from None

    def _patiently(self, request: Any) -> None:
        while not request.Test():
            time.sleep(_LOOK_SECONDS)

    def take_timing(self) -> tuple[float, float]:
        """Returns the mean and longest milliseconds of a reduction since the last call."""
        mean = 1e3 * self._seconds / max(1, self._calls)
        longest = 1e3 * self._longest
        self._seconds, self._calls, self._longest = 0.0, 0, 0.0
        return mean, longest

    def abort(self, code: int, text: str = "") -> NoReturn:
        """Ends the job; the text is for the launcher of an elastic job."""
        _flush()
        if launcher.is_elastic():  # Open MPI would end this rank alone
            launcher.note(launcher.ABORT, code, text)
            time.sleep(_LAUNCHER_SECONDS)
            os._exit(errors.EXIT_DONE)
        if self._comm is not None:
            self._comm.Abort(code)
        os._exit(code)

    def finish(self, code: int) -> NoReturn:
        """Ends this process with the exit code that all ranks agreed on; aborts if one is late."""
        _flush()
        if self.exit_codes(code) is None:
            self.abort(errors.EXIT_HANGING)
        if self.is_root:  # before `Finalize`, which may hang if a rank is lost meanwhile
            launcher.note(launcher.ENDED, code)
        if self._comm is not None:
            # Open MPI reports an abort unless all others exit with 0; MPICH needs one code from all
            root_alone_tells = "Open MPI" in self._mpi.Get_library_version()
            if not self._mpi.Is_finalized():
                self._mpi.Finalize()
            if root_alone_tells:
                if not self.is_root:
                    os._exit(errors.EXIT_DONE)
                if code != errors.EXIT_DONE:  # mpirun would report ranks that have not left yet
                    time.sleep(1.0)
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
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
