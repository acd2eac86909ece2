"""The heartbeat of this process, and the watchdog that ends the process without one."""

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
"""Factor on the timeout while compiling and saving."""
_TIME_FOR_OTHERS_S = 1.0
_LOOKS = 10.0
_STOPPED_S = 2.0
_WEEK = 604800.0
_IN_A_THREAD = 2
"""SIGEV_THREAD of a timer."""


@dataclasses.dataclass
class _Heart:
    last: float
    factor: float = 1.0


_heart = _Heart(time.monotonic())


def heartbeat() -> None:
    """Tells the watchdog that this process works, at each environment step or few updates."""
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
    """Ends this process with exit code 86 if it hangs, and prints the stacks of its threads.

    MPI has no timeouts, so every rank watches itself. All notice within a moment, and a second
    later the first one ends the job. A thread that keeps the interpreter lock goes unnoticed.
    """
    if math.isinf(seconds):
        yield
        return
    over = threading.Event()
    watched = ctypes.c_ulong(threading.get_ident()) if is_guest() else None
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def dump(message: str, file: TextIO) -> None:
        file.write(message)
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)

    def watch() -> None:
        interval = min(1.0, seconds / _LOOKS)
        looked = time.monotonic()
        while not over.wait(interval):
            now = time.monotonic()
            if now - looked > interval + _STOPPED_S:  # the whole process was paused, as by Ctrl-Z
                heartbeat()
            looked = now
            idle = now - _heart.last
            if idle > seconds * _heart.factor:
                ending = "ending the job" if watched is None else "interrupting the run"
                message = f"{speaker}: no progress for {idle:.0f} s, {ending}; stacks:\n"
                with contextlib.suppress(OSError, ValueError):
                    dump(message, sys.stderr)
                if log is not None:
                    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
                        dump(message, file)
                if watched is not None:
                    raise_in(watched, ctypes.py_object(Interruption))
                    heartbeat()  # once more if it is lost: Python drops what destructors raise
                    continue
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
            raise_in(watched, None)  # cancels an exception that is not raised yet


class _Event(ctypes.Structure):
    """Action of a POSIX timer: it calls a function in a new thread."""

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

    MPI starts within an import, which a `watchdog` in Python cannot interrupt. So faulthandler's
    thread prints the stacks, and a timer of the C library calls `_exit`.
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
