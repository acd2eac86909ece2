"""Ends a process that has come to a halt, with the stacks of its threads.

A rank that waits for one that is stuck or gone waits for ever: MPI has no time limits. So every
rank watches itself. Ranks move in step, which makes all of them notice within a moment; each
first shows where it stands, and a second later the first to leave ends the job.

Standard library only. It cannot see a thread that holds Python's interpreter lock for ever.
"""

import contextlib
import faulthandler
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from music_tf.errors import EXIT_HANGING

PATIENCE = 4.0
"""How many times longer than usual compiling and saving may take."""
_TIME_FOR_OTHERS_S = 1.0
_LOOKS = 10.0
_STOPPED_S = 2.0


class _Progress:
    """When this process last got on, and how long it may stand still."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.allowance = 1.0


_progress = _Progress()


def note_progress() -> None:
    """Says that the process gets on: at every environment step, and every few updates."""
    _progress.last = time.monotonic()


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Allows what happens within `PATIENCE` times as long as anything else."""
    note_progress()
    _progress.allowance = PATIENCE
    try:
        yield
    finally:
        _progress.allowance = 1.0
        note_progress()


@contextlib.contextmanager
def watching(seconds: float, speaker: str, log: Path | None) -> Iterator[None]:
    """Ends this process with exit code 86 if it makes no progress for so long within.

    Args:
        seconds: Longest time between two calls of `note_progress`; infinity watches nothing.
        speaker: Begins the message, such as `music-tf: rank 1`.
        log: File that the stacks are added to, beside standard error.
    """
    if math.isinf(seconds):
        yield
        return
    over = threading.Event()

    def watch() -> None:
        interval = min(1.0, seconds / _LOOKS)
        looked = time.monotonic()
        while not over.wait(interval):
            now = time.monotonic()
            if now - looked > interval + _STOPPED_S:  # the whole process stood still, as in Ctrl-Z
                note_progress()
            looked = now
            idle = now - _progress.last
            if idle > seconds * _progress.allowance:
                _end(f"{speaker}: no progress for {idle:.0f} s, ending the job; stacks:\n", log)

    note_progress()
    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _end(message: str, log: Path | None) -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(message)
        sys.stderr.flush()
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
    if log is not None:
        with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
            file.write(message)
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
    time.sleep(_TIME_FOR_OTHERS_S)
    os._exit(EXIT_HANGING)
