"""Requests to stop by signals, and runs inside the caller's own process, such as a notebook.

An entry point installs the handlers in its first lines, since a signal during slow imports would
end the process. So this module needs the standard library alone.
"""

import contextlib
import contextvars
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from music_tf.errors import Hanging

_SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
_received: list[int] = []
_handlers: dict[int, Callable[[int, FrameType | None], None] | int | None] = {}
_at_once = threading.Event()
"""Whether the first signal ends the process, because nothing is left to save."""
_replaced: set[int] = set()
"""Signals whose handlers a library has replaced."""
_guest_since: contextvars.ContextVar[float | None] = contextvars.ContextVar("since", default=None)
"""When the run began that this thread trains inside the caller's own process, if it does."""
_LOGGER = logging.getLogger(__name__)
_START_TICKS = 19
"""Index of the start time, in ticks since boot, among the fields after the name in
/proc/PID/stat."""


class SecondInterrupt(KeyboardInterrupt):
    """A second Ctrl-C, or a signal within `ending_at_once`; raised anywhere in the main thread."""


class Interruption(BaseException):
    """Raised by the watchdog anywhere in a thread that hangs in the caller's own process."""


def install_signal_handlers() -> None:
    """SIGUSR1, SIGTERM and Ctrl-C ask to save and stop; a second Ctrl-C ends the process."""
    _handlers.update(dict.fromkeys(_SIGNALS, _note))
    for number in _SIGNALS:
        signal.signal(number, _note)


def keep_signal_handlers() -> None:
    """Sets our handlers again where a library has replaced them, as that of a robot may do."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler in _handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
            if number not in _replaced:
                name = signal.Signals(number).name
                _LOGGER.warning("a library replaced the handler of %s; ours is set again", name)
            _replaced.add(number)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    if _at_once.is_set() or (number == signal.SIGINT and signal.SIGINT in _received):
        raise SecondInterrupt
    if number == signal.SIGINT:
        with contextlib.suppress(OSError):  # not through a stream that this may interrupt
            after_echo = b"\n" * os.isatty(2)
            os.write(2, after_echo + b"music-tf: saving and stopping; Ctrl-C again ends at once\n")
    _received.append(number)


def end_as_ctrl_c() -> None:
    """Makes the first SIGTERM act like Ctrl-C, so that drafts are removed."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        _handlers.clear()
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    _handlers.update({signal.SIGTERM: end, signal.SIGINT: signal.getsignal(signal.SIGINT)})
    signal.signal(signal.SIGTERM, end)


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Lets the first signal within act like a second Ctrl-C, because everything is saved."""
    _at_once.set()
    try:
        yield
    finally:
        _at_once.clear()


def is_ctrl_c(raised: KeyboardInterrupt) -> bool:
    """Whether a signal raised it; under our handlers only a second Ctrl-C does."""
    return isinstance(raised, SecondInterrupt) or signal.getsignal(signal.SIGINT) is not _note


def stop_requested() -> bool:
    """Whether a signal has asked this process to save and stop; sees to our handlers."""
    keep_signal_handlers()
    return bool(_received)


def request_stop() -> None:
    _received.append(signal.SIGUSR1)


def forget_signals() -> None:
    _received.clear()


def since_launch() -> float:
    """Returns the seconds since the start of this process, or of a run inside the caller's."""
    if (began := _guest_since.get()) is not None:
        return time.monotonic() - began
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[_START_TICKS])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return max(0.0, age)


def is_guest() -> bool:
    return _guest_since.get() is not None


@contextlib.contextmanager
def as_guest() -> Iterator[None]:
    """Trains inside the caller's own process: signals and the watchdog end the run alone."""
    forget_signals()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        install_signal_handlers()
    began = _guest_since.set(time.monotonic())
    try:
        yield
    except Interruption as interruption:
        raise Hanging(
            "no progress for longer than --hang-after; the log of the run shows where it stood"
        ) from interruption
    finally:
        _guest_since.reset(began)
        _handlers.clear()
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        forget_signals()
