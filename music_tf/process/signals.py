"""Requests to stop, and runs inside a process that the caller owns, such as a notebook.

Standard library only: signal handlers are installed in the first lines of an entry point. A signal
that arrives during the imports would otherwise end the process.
"""

import contextlib
import contextvars
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from music_tf.errors import Hanging

_SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
_received: list[int] = []
_guest = contextvars.ContextVar("guest", default=False)
"""Whether this thread trains inside a process that the caller owns."""
_guest_since: contextvars.ContextVar[float | None] = contextvars.ContextVar("since", default=None)
"""When it began to, by the monotonic clock."""
_START_TICKS = 19
"""Place of the start, in ticks since the machine was booted, behind the name in /proc/PID/stat."""


class SecondInterrupt(KeyboardInterrupt):
    """A second Ctrl-C: arrives in the main thread, wherever it is."""


class Interruption(BaseException):
    """Arrives in the thread of a guest that stands still, wherever it is."""


def install_signal_handlers() -> None:
    """Turns SIGUSR1, SIGTERM and Ctrl-C into a request to save and stop.

    A second Ctrl-C ends the process at once.
    """
    for number in _SIGNALS:
        signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    if number == signal.SIGINT and signal.SIGINT in _received:
        raise SecondInterrupt
    _received.append(number)


def end_as_ctrl_c() -> None:
    """Lets the first SIGTERM end this process as Ctrl-C does, so that drafts are removed."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def is_ctrl_c(raised: KeyboardInterrupt) -> bool:
    """Whether a signal has raised it, and not code of the user's by itself.

    Under handlers of ours only a second Ctrl-C raises anything.
    """
    return isinstance(raised, SecondInterrupt) or signal.getsignal(signal.SIGINT) is not _note


def stop_requested() -> bool:
    """Whether a signal has asked this process to save and stop."""
    return bool(_received)


def request_stop() -> None:
    """Asks this process to save and stop, as a signal does that another rank got."""
    _received.append(signal.SIGUSR1)


def forget_signals() -> None:
    """Forgets a request to stop, so that another run in this process can begin."""
    _received.clear()


def since_launch() -> float:
    """Returns the seconds since this process was started, or since it became a guest's."""
    if (began := _guest_since.get()) is not None:
        return time.monotonic() - began
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[_START_TICKS])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return max(0.0, age)


def is_guest() -> bool:
    """Whether this thread trains inside a process that the caller owns."""
    return _guest.get()


@contextlib.contextmanager
def as_guest() -> Iterator[None]:
    """Trains inside a process that the caller owns, such as a notebook.

    Signals ask the run to stop while it lasts, and afterwards do what they did before. Outside of
    the main thread, where Python handles none, they do that all the time. A watchdog ends the run
    and not the process.

    Raises:
        Hanging: The watchdog has interrupted the run.
    """
    forget_signals()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        install_signal_handlers()
    token, began = _guest.set(True), _guest_since.set(time.monotonic())
    try:
        yield
    except Interruption as interruption:
        raise Hanging(
            "no progress for longer than --hang-after; the log of the run shows where it stood"
        ) from interruption
    finally:
        _guest.reset(token)
        _guest_since.reset(began)
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        forget_signals()
