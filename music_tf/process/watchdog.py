"""The heartbeat of this process, and what ends the process when the heart stands still."""

import contextlib
import ctypes
import dataclasses
import faulthandler
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from music_tf.errors import EXIT_HANGING
from music_tf.process.signals import Interruption, is_guest

LONGER = 4.0
"""How many times longer than usual compiling and saving may take."""
_TIME_FOR_OTHERS_S = 1.0
_LOOKS = 10.0
_STOPPED_S = 2.0
_WEEK = 604800.0
_IN_A_THREAD = 2
"""SIGEV_THREAD of a timer."""


@dataclasses.dataclass
class _Heart:
    last: float
    """When it beat last."""
    factor: float = 1.0
    """On the timeout."""


_heart = _Heart(time.monotonic())


def heartbeat() -> None:
    """Tells the watchdog that this process works: at each environment step, every few updates."""
    _heart.last = time.monotonic()


@contextlib.contextmanager
def longer_timeout() -> Iterator[None]:
    """Multiplies the watchdog's timeout by `LONGER` within, for compiling and saving."""
    heartbeat()
    _heart.factor = LONGER
    try:
        yield
    finally:
        _heart.factor = 1.0
        heartbeat()


@contextlib.contextmanager
def watchdog(seconds: float, speaker: str, log: Path | None) -> Iterator[None]:
    """Ends this process with exit code 86 when it stands still, with the stacks of its threads.

    A rank waits for ever for one that is stuck or gone: MPI has no timeouts. So every rank watches
    itself. Ranks move in step, so that all of them notice within a moment. Each first shows where
    it stands, and a second later the first to leave ends the job. A thread that holds Python's
    interpreter lock for ever is not seen. The process of others (`as_guest`) goes on: its thread is
    interrupted once it comes back to Python.

    Args:
        seconds: Longest time between two heartbeats; infinity watches nothing.
        speaker: Begins the message, such as `music-tf: rank 1`.
        log: File that the stacks are added to, beside standard error.
    """
    if math.isinf(seconds):
        yield
        return
    over = threading.Event()
    watched = ctypes.c_ulong(threading.get_ident()) if is_guest() else None
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def tell(message: str, file: TextIO) -> None:
        file.write(message)
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)

    def watch() -> None:
        interval = min(1.0, seconds / _LOOKS)
        looked = time.monotonic()
        while not over.wait(interval):
            now = time.monotonic()
            if now - looked > interval + _STOPPED_S:  # the whole process stood still, as in Ctrl-Z
                heartbeat()
            looked = now
            idle = now - _heart.last
            if idle > seconds * _heart.factor:
                ending = "ending the job" if watched is None else "interrupting the run"
                message = f"{speaker}: no progress for {idle:.0f} s, {ending}; stacks:\n"
                with contextlib.suppress(OSError, ValueError):
                    tell(message, sys.stderr)
                if log is not None:
                    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
                        tell(message, file)
                if watched is not None:
                    raise_in(watched, ctypes.py_object(Interruption))
                    return
                time.sleep(_TIME_FOR_OTHERS_S)
                os._exit(EXIT_HANGING)

    heartbeat()
    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if watched is not None:
            raise_in(watched, None)  # one that comes too late


class _Event(ctypes.Structure):
    """What a POSIX timer does once its time is up: call a function in a thread of its own."""

    _fields_ = (
        ("argument", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_byte * 40),
    )


class _Times(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "in_s", "in_ns"))


@contextlib.contextmanager
def backstop(seconds: float) -> Iterator[None]:
    """Ends this process with exit code 86 after `seconds`, whatever holds the interpreter lock.

    MPI starts within an import, which a `watchdog` in Python cannot interrupt. So stacks are shown
    by faulthandler's thread, and the C library's timer calls `_exit`. Where there is no such timer,
    or the time is longer than a week, nothing is done.
    """
    library = ctypes.CDLL(None)
    if seconds > _WEEK or sys.platform != "linux" or not hasattr(library, "timer_create"):
        yield
        return
    end = ctypes.cast(library._exit, ctypes.c_void_p).value
    timer = ctypes.c_void_p()
    event = _Event(argument=EXIT_HANGING, kind=_IN_A_THREAD, function=end)
    library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer))
    whole = int(seconds)
    due = _Times(in_s=whole + 1, in_ns=int(1e9 * (seconds - whole)))
    library.timer_settime(timer, 0, ctypes.byref(due), None)
    faulthandler.dump_traceback_later(seconds, file=sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        library.timer_delete(timer)
