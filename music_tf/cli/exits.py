"""How a process ends: one message or traceback, and an exit code that all ranks agree on.

Before MPI is loaded, all ranks meet the same fault. So only the first rank prints it, and it ends a
moment after the others: mpirun then reports its exit code and adds no lines. With MPI, ranks first
agree on which of them have failed. If a single rank cannot load MPI, it waits for the first rank to
print the fault, and otherwise ends the job itself.
"""

import contextlib
import errno
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from music_tf import errors
from music_tf.process.launcher import ABORT, is_elastic, launched_rank, launched_world_size, note
from music_tf.process.signals import is_ctrl_c

if TYPE_CHECKING:
    from music_tf.distributed import Communicator

MOST_LINES = 10
_LONGEST_LINE = 300
_AGREEMENT_SECONDS = 3.0
_FIRST_RANK_SECONDS = 2.0
_SECONDS_PER_RANK = 0.7
_LAST_RANK_TO_WAIT = 4
_STANDARD_ERROR = 2


def report(fault: errors.MusicError, speaker: str = "music-tf") -> None:
    lines = [
        line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 4]} ..."
        for line in str(fault).splitlines()[:MOST_LINES]
    ]
    _complain(f"{speaker}: " + "\n".join(lines or ["stopped"]) + "\n")


def open_streams() -> None:
    """Lets standard streams that the caller has closed (`>&-`) discard what is written."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def guarded(action: Callable[[], int]) -> int:
    """Runs an action of this process alone, reports its fault, and returns the exit code."""
    try:
        code = action()
        sys.stdout.flush()
    except errors.NoMpi as fault:
        return _without_mpi(fault)
    except errors.MusicError as fault:
        if launched_rank() == 0:
            report(fault)
        return fault.exit_code
    except KeyboardInterrupt:
        return errors.EXIT_STOPPED
    except Exception as error:
        return _without_output(error)
    return code


def _without_output(error: Exception) -> int:
    """Returns the exit code of a process whose output ends or is full, or that has a bug."""
    number = error.errno if isinstance(error, OSError) else None
    if number not in (errno.EPIPE, errno.ENOSPC):  # a bug: one traceback and exit code 1
        _show_traceback(launched_rank(), launched_world_size(), error)
        return errors.EXIT_BUG
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if number == errno.EPIPE:
        return errors.EXIT_DONE
    report(errors.EnvironmentFault("the output cannot be written: no space left on the device"))
    return errors.EnvironmentFault.exit_code


def _without_mpi(fault: errors.NoMpi) -> int:
    """Returns the exit code of a rank that cannot load MPI, or ends the job if it is alone."""
    rank, folder = launched_rank(), os.environ.get("PMIX_SERVER_TMPDIR")
    mark = Path(folder) / "music_tf_no_mpi" if folder else Path(os.devnull) / "none"
    end = time.monotonic() + (_FIRST_RANK_SECONDS if rank else 0.0)
    while time.monotonic() < end:
        if mark.exists():
            return fault.exit_code
        time.sleep(0.02)
    with contextlib.suppress(OSError):
        mark.touch()  # others of this host then print nothing
    report(fault, f"music-tf: rank {rank} on {socket.gethostname()}")
    if is_elastic():
        note(ABORT, fault.exit_code)
    if rank:
        os._exit(fault.exit_code)
    return fault.exit_code


def leave(code: int) -> NoReturn:
    """Ends a process whose ranks have not loaded MPI."""
    ranks = launched_world_size()
    if ranks == 1:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    # mpirun would wait for others, and these for this rank
    if is_elastic() and code != errors.EXIT_DONE:
        time.sleep(_FIRST_RANK_SECONDS if launched_rank() else 0.0)
        note(ABORT, code)
    if code == errors.EXIT_BUG:
        os._exit(code)
    if launched_rank() > 0:
        os._exit(errors.EXIT_DONE)
    if code != errors.EXIT_DONE:
        time.sleep(min(0.5 + 0.1 * ranks, 3.0))
    os._exit(code)


def run_together(comm: "Communicator", action: Callable[[], None]) -> NoReturn:
    """Runs an action on all ranks, then ends the process with the exit code they agree on."""

    def end_from_thread(raised: threading.ExceptHookArgs) -> None:
        if raised.exc_type is not SystemExit:
            _show_traceback(comm.rank, comm.size, raised.exc_value)
            comm.abort(errors.EXIT_BUG)

    threading.excepthook = end_from_thread
    fault: BaseException | None = None
    try:
        action()
    except KeyboardInterrupt as raised:
        if is_ctrl_c(raised):
            comm.abort(errors.EXIT_STOPPED)
        last = traceback.extract_tb(raised.__traceback__)[-1]
        fault = errors.EnvironmentFault(
            f"{last.filename}, line {last.lineno}: raises KeyboardInterrupt without a signal\n"
            "raise another exception in an environment or module of yours, such as RuntimeError"
        )
    except BaseException as raised:  # other ranks may be waiting for this one
        fault = comm.loss_in(raised) or raised
    if isinstance(fault, errors.RankLost):
        comm.abort(fault.exit_code, str(fault))
    if fault is None:
        code = errors.EXIT_HANGING
        codes = comm.exit_codes(errors.EXIT_DONE)
    else:
        code = fault.exit_code if isinstance(fault, errors.MusicError) else errors.EXIT_BUG
        codes = comm.exit_codes(code, _AGREEMENT_SECONDS)
    if codes is None:
        _tell(comm, fault, met_by_all=False)
        comm.abort(code)
    first = next((rank for rank, code in enumerate(codes) if code != errors.EXIT_DONE), 0)
    if comm.rank == first:
        _tell(comm, fault, met_by_all=all(codes))
    comm.finish(codes[first])


def _tell(comm: "Communicator", fault: BaseException | None, met_by_all: bool) -> None:
    if isinstance(fault, errors.MusicError):
        if not met_by_all:
            _wait_for_lower(comm.rank)
        report(fault, "music-tf" if met_by_all else f"music-tf: rank {comm.rank}")
    elif fault is not None:
        _show_traceback(comm.rank, comm.size, fault)


def _show_traceback(rank: int, ranks: int, error: BaseException | None) -> None:
    """Writes a traceback; the lowest rank writes first and ends the job before the others do."""
    text = "".join(traceback.format_exception(error))
    if error is not None and errors.place_of(error):  # such as a reward term of the user's
        text = f"music-tf: {errors.error_line(error)}\n{text}"
    if ranks > 1:
        _wait_for_lower(rank)
        text = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
    _complain(text)


def _wait_for_lower(rank: int) -> None:
    time.sleep(_SECONDS_PER_RANK * min(rank, _LAST_RANK_TO_WAIT))


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
