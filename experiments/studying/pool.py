"""Runs a study's runs side by side, each a process with one thread, until all are done.

A run that has come to its end is judged by a process of its own (`evaluate --full`), then stored.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from music_tf.errors import EXIT_DONE, EXIT_STOPPED, EnvironmentFault, MusicError
from music_tf.process import death_follower
from music_tf.storage.checkpoint import labels
from music_tf.storage.lock import refuse_if_in_use
from music_tf.storage.run_directory import SUMMARY_NAME
from studying import record
from studying.plan import Run

WAITING, RUNNING, DONE = "waiting", "running", "done"
STOPPED, FAILED, BLOCKED = "stopped", "failed", "not run"
_READY_SECONDS = 1.0
_POLL_SECONDS = 0.2
_SHOWN_LINES = 10


class Child(NamedTuple):
    """A run that is going on, or being judged."""

    process: "subprocess.Popen[bytes]"
    started: float
    judges: bool


class Requests:
    """Ctrl-C, SIGTERM, SIGUSR1 and the end of the time allowed: each asks to save and stop."""

    def __init__(self, minutes: float) -> None:
        """Installs the handlers, and lets the time begin."""
        self._received: list[int] = []
        self._deadline = time.monotonic() + 60.0 * minutes
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def to_stop(self) -> bool:
        """Whether it is time to save and stop."""
        return bool(self._received) or time.monotonic() >= self._deadline

    def to_end_at_once(self) -> bool:
        """Whether somebody pressed Ctrl-C a second time."""
        return self._received.count(signal.SIGINT) > 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received.append(number)


class Pool:
    """The runs of a study, and what has become of each."""

    def __init__(
        self, runs: Sequence[Run], trainer: Sequence[str], results: Path, parallel: int
    ) -> None:
        """Looks up what is done already.

        Args:
            runs: Each behind the one that it starts from.
            trainer: The words of a command that takes a verb and its arguments.
            results: Where stored results go.
            parallel: How many runs go on at once, at least 1.

        Raises:
            UsageError: A stored result is that of another command.
        """
        self.runs = runs
        self.states = {run.name: DONE if record.stored(run, results) else WAITING for run in runs}
        for run in reversed(runs):  # behind a missing run, what it starts from is needed too
            if self.states[run.name] == WAITING and run.source and not _is_whole(run.source):
                self.states[run.source.name] = WAITING
        self.faults: dict[str, list[str]] = {}
        self._trainer = tuple(trainer)
        self._results = results
        self._parallel = parallel
        self._children: dict[str, Child] = {}

    def work(self, requests: Requests, show: Callable[[], None]) -> None:
        """Runs what waits, until nothing is left or a request to stop has been met.

        Args:
            requests: When to stop.
            show: Called several times a second.

        Raises:
            EnvironmentFault: Notes or logs cannot be written; what goes on saves and stops.
        """
        asked: dict[str, float] = {}
        try:
            while True:
                self._collect()
                if requests.to_end_at_once():
                    self._end_children()
                elif requests.to_stop():
                    self._ask_children(asked)
                else:
                    self._start_ready()
                show()
                if not self._children:
                    break
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise EnvironmentFault(f"{error.filename}: {error.strerror}") from error

    def count(self, state: str) -> int:
        """Returns how many runs are in a state."""
        return list(self.states.values()).count(state)

    def _start_ready(self) -> None:
        for run in self.runs:
            if len(self._children) >= self._parallel:
                return
            if self.states[run.name] != WAITING:
                continue
            above = self.states[run.source.name] if run.source else DONE
            if above in (FAILED, BLOCKED, STOPPED):
                self.states[run.name] = BLOCKED
            elif above == DONE:
                try:
                    self._start(run)
                except MusicError as fault:
                    self.faults[run.name] = str(fault).splitlines()
                    self.states[run.name] = FAILED

    def _start(self, run: Run) -> None:
        """Starts or resumes a run.

        Raises:
            UsageError: A job is still at work in its directory.
        """
        run.directory.parent.mkdir(parents=True, exist_ok=True)
        refuse_if_in_use(run.directory)
        if not _has_checkpoint(run):
            shutil.rmtree(run.directory, ignore_errors=True)
            record.forget(run)
        started = record.note_start(run)
        self._children[run.name] = Child(self._process(run, next_words(run)), started, judges=False)
        self.states[run.name] = RUNNING

    def _judge(self, run: Run) -> None:
        """Starts to measure what a run has learned."""
        words = ["evaluate", str(run.directory), "--env-id", run.env_id, "--full"]
        child = self._process(run, words)
        self._children[run.name] = Child(child, time.monotonic(), judges=True)

    def _process(self, run: Run, words: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Returns a process that writes to the log of a run."""
        with run.log.open("ab") as log:
            return subprocess.Popen(
                [*self._trainer, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
                preexec_fn=death_follower(),  # noqa: PLW1509 - no threads here
            )

    def _collect(self) -> None:
        for run in self.runs:
            child = self._children.get(run.name)
            code = child.process.poll() if child else None
            if child is None or code is None:
                continue
            del self._children[run.name]
            if not child.judges:
                record.note_end(run, child.started)
            if code == EXIT_DONE and not child.judges:
                self._judge(run)
            elif child.judges and code == -signal.SIGTERM:
                self.states[run.name] = STOPPED  # the same end of training is judged next time
            else:
                self.states[run.name] = self._outcome(run, code)

    def _outcome(self, run: Run, code: int) -> str:
        if code == EXIT_STOPPED:
            return STOPPED
        if code != EXIT_DONE:
            ending = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
            self.faults[run.name] = [ending, *record.last_lines(run, _SHOWN_LINES)]
            return FAILED
        try:
            if not record.result_file(run, self._results).exists():
                record.store(run, self._results)
        except MusicError as fault:
            self.faults[run.name] = str(fault).splitlines()
            return FAILED
        return DONE

    def _ask_children(self, asked: dict[str, float]) -> None:
        """Asks each child, again and again: it is deaf until it has installed its handlers."""
        now = time.monotonic()
        for name, child in self._children.items():
            if now - asked.get(name, child.started) > _READY_SECONDS:
                # An evaluation has nothing to save
                child.process.send_signal(signal.SIGTERM if child.judges else signal.SIGUSR1)
                asked[name] = now

    def _end_children(self) -> None:
        for name, child in self._children.items():
            child.process.kill()
            child.process.wait()
            self.states[name] = STOPPED
        self._children.clear()


def next_words(run: Run) -> list[str]:
    """Returns the verb and arguments that begin a run, or go on with it."""
    return run.words_to_resume() if _has_checkpoint(run) else run.words()


def _has_checkpoint(run: Run) -> bool:
    """Whether there is something to go on from; without it a resumed run would lose its start."""
    return bool(labels(entry.name for entry in (run.directory / "checkpoints").glob("*")))


def _is_whole(run: Run) -> bool:
    """Whether others can start from a run: it has a checkpoint and came to its end."""
    return _has_checkpoint(run) and (run.directory / SUMMARY_NAME).exists()
