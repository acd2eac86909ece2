"""The heartbeat of this process, and the watchdog that ends the process without one."""

import contextlib
import ctypes
import faulthandler
import math
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, TextIO

from music_tf.errors import EXIT_HANGING
from music_tf.process.launcher import ABORT, is_elastic, note
from music_tf.process.signals import Interruption, is_guest

LONGER = 4.0
"""Factor on the timeout while compiling, saving, or waiting for answers of other ranks."""
_STOPPED_S = 2.0
_WEEK = 604800.0
_IN_A_THREAD = 2  # SIGEV_THREAD
_heart = SimpleNamespace(last=time.monotonic(), factor=1.0, replaceable=False)
"""Time of the last heartbeat, present factor on the timeout, and whether others can go on alone."""


def heartbeat() -> None:
    """Tells the watchdog that this process works, at each environment step or few updates."""
    _heart.last = time.monotonic()


@contextlib.contextmanager
def longer_timeout() -> Iterator[None]:
    """Multiplies the watchdog's timeout by `LONGER` within, as for compiling and saving."""
    heartbeat()
    outer, _heart.factor = _heart.factor, LONGER
    try:
        yield
    finally:
        _heart.factor = outer
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
        interval = min(1.0, seconds / 10.0)
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
                time.sleep(1.0)  # the watchdogs of other ranks report as well
                _end_process(message.removeprefix("music-tf: ").partition(",")[0])

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


def let_others_go_on() -> None:
    """Lets an elastic job go on if this process hangs while it does not wait for others."""
    _heart.replaceable = True


def _end_process(text: str) -> NoReturn:
    if is_elastic():  # other ranks learn of a signal, and not of an exit code
        if not _heart.replaceable or _heart.factor != 1.0:
            note(ABORT, EXIT_HANGING, text)
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(EXIT_HANGING)


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
    # sigevent: argument, signal, kind, function, rest; the timer calls it in a new thread
    event = struct.pack("@PiiP40x", EXIT_HANGING, 0, _IN_A_THREAD, end)
    library.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer))
    whole = int(seconds)
    # itimerspec: seconds and nanoseconds of the period, which is none, and until it is due
    due = struct.pack("@4l", 0, 0, whole + 1, int(1e9 * (seconds - whole)))
    library.timer_settime(timer, 0, due, None)
    faulthandler.dump_traceback_later(seconds, file=sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        library.timer_delete(timer)
