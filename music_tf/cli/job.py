"""Runs an mpirun: passes on requests to stop, does what ranks note, and knows why it ended."""

import contextlib
import dataclasses
import math
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from music_tf.errors import EXIT_DONE, EXIT_HANGING, EXIT_STOPPED, Hanging
from music_tf.process.children import death_follower
from music_tf.process.launcher import ABORT, ENDED, KILL, LEARNS, notes_in
from music_tf.process.signals import install_signal_handlers, stop_requested
from music_tf.reading.stored import CONFIG_NAME
from music_tf.storage.run_directory import ended_at_once

_START_SECONDS = 1.0
_REPEAT_SECONDS = 1.0
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 1.0
_MISSING = 10
"""Times that a rank is looked for, of which the others may yet say how it ended."""
_KILLED = (128 + signal.SIGKILL, signal.SIGKILL)
"""Exit codes of mpirun, of Open MPI and of MPICH, after a rank was killed."""
_END_SECONDS = 20.0
"""Time limit of mpirun after the end of the first rank."""


class Launch(NamedTuple):
    """A command line of `music-tf launch`."""

    options: str
    """As typed, for the line that resumes the run."""
    ranks: int
    hosts: Mapping[str, int]
    """Number of ranks that each takes; empty: this host alone."""
    restarts: int
    command: list[str]
    """The verb with its arguments."""


def run_job(
    command: list[str],
    environment: Mapping[str, str],
    notes: Path | None = None,  # in which ranks write, see `process.launcher`
    again: str = "",  # the line that resumes the run
    kill_rank: Callable[[str, str], None] | None = None,  # by number and process; None: not elastic
) -> int:
    """Runs an mpirun and returns its exit code, or 128 + N if signal N ended it.

    Raises:
        Hanging: A rank or a host was lost that the job cannot do without.
    """
    install_signal_handlers()
    ask_at = time.monotonic() + _START_SECONDS
    job = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C does not reach it directly
        preexec_fn=death_follower(),  # noqa: PLW1509 - no threads here
    )
    watch = _Watch(job.pid, kill_rank)
    try:
        while True:
            if stop_requested() and time.monotonic() > ask_at:
                job.send_signal(signal.SIGUSR1)
                ask_at = time.monotonic() + _REPEAT_SECONDS  # ranks that are starting miss it
            code = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = job.wait(timeout=_POLL_SECONDS)
            code = watch.ended(code, notes_in(notes) if notes else {ENDED: []})
            if code is not None:
                return code
    except Hanging as fault:
        raise Hanging(with_cure(str(fault), notes, again)) from None
    except KeyboardInterrupt:
        if notes is None:
            return EXIT_STOPPED
        raise ended_at_once(notes.parent, again) from None
    finally:
        _stop(job)
        if notes is not None:
            notes.unlink(missing_ok=True)


def with_cure(text: str, notes: Path | None, again: str) -> str:
    """Adds the line that resumes a run to what ended it, unless nothing of the run was stored."""
    if notes is None:
        return text
    begun = (notes.parent / CONFIG_NAME).exists()
    return f"{text}; to resume:\n{again}" if begun else f"{text}\nstart it again"


@dataclasses.dataclass
class _Watch:
    """Decides when a job is over, and with which exit code."""

    mpirun: int
    kill_rank: Callable[[str, str], None] | None
    end: float = math.inf
    killed: set[str] = dataclasses.field(default_factory=set)
    started: int = 0
    """Ranks of this host."""
    missing: int = 0
    """How often in a row a rank was."""

    def ended(self, code: int | None, told: Mapping[str, list[str]]) -> int | None:
        """Returns the exit code of a job, None while it runs; `code` is that of its mpirun."""
        if ABORT in told:
            number, _, text = told[ABORT][0].partition(" ")
            if int(number) == EXIT_HANGING:
                raise Hanging(text or "a rank hung")
            return int(number)
        if told.get(ENDED):
            self.end = min(self.end, time.monotonic() + _END_SECONDS)
            if (self.kill_rank and code is not None) or time.monotonic() > self.end:
                return int(told[ENDED][0])  # mpirun's own code may be that of a lost rank
        if code == EXIT_DONE and ENDED not in told:
            raise Hanging("a rank or a host was lost: mpirun ended before the first rank")
        if code in _KILLED:
            raise Hanging("a process was killed (memory?)")
        if code is None and self.kill_rank:
            self._keep_elastic(told, self.kill_rank)
        return code if code is None or code >= 0 else 128 - code

    def _keep_elastic(
        self, told: Mapping[str, list[str]], kill_rank: Callable[[str, str], None]
    ) -> None:
        """Kills ranks that hang; notices one that is lost for which the others would wait."""
        for rank in {*told.get(KILL, [])} - self.killed:
            self.killed.add(rank)
            kill_rank(*rank.split())
        learners = [place.split() for place in told.get(LEARNS, [])]
        here = [process for process, host in learners if host == platform.node()]
        gone = not all(Path(f"/proc/{process}").exists() for process in here)
        if not learners:  # ranks have not met
            self.started = max(self.started, ranks := len(_children(self.mpirun)))
            gone = ranks < self.started
        self.missing = self.missing + 1 if gone and ENDED not in told else 0
        if self.missing > _MISSING:
            raise Hanging("a learner was lost" if learners else "a rank was lost at the start")


def _children(process: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return []


def _stop(job: "subprocess.Popen[bytes]") -> None:
    if job.poll() is not None:
        return
    job.terminate()
    try:
        job.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()
