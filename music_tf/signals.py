"""Turns SIGUSR1, SIGTERM and Ctrl-C into a request that the training loop answers by saving.

Standard library only: handlers are installed in the first lines of an entry point, since a
signal that arrives during the imports would otherwise end the process.
"""

import signal
from types import FrameType

_STOP_SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
_received: list[int] = []


def install() -> None:
    """Installs the handlers; a second Ctrl-C ends the process at once."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _handle)


def stop_requested() -> bool:
    """Whether a signal has asked this process to save and stop."""
    return bool(_received)


def clear() -> None:
    """Forgets any request; for tests and for a second run in one process."""
    _received.clear()


def _handle(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT and signal.SIGINT in _received:
        raise KeyboardInterrupt
    _received.append(number)
