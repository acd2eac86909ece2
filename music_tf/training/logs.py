"""Each rank's log file, and warnings of the root on the terminal."""

import contextlib
import logging
import sys
from pathlib import Path
from typing import TextIO

_PACKAGE = "music_tf"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _LogFile(logging.FileHandler):
    """A log file; a full disk loses lines, never the run."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drops the line."""


class _Terminal(logging.Handler):
    """Writes to whatever `sys.stderr` is at the time, so that a progress bar can make room."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the message without a time."""
        stream: TextIO = sys.stderr
        with contextlib.suppress(OSError, ValueError):
            stream.write(f"{record.levelname.lower()}: {self.format(record)}\n")


def attach_log(path: Path, is_root: bool) -> list[logging.Handler]:
    """Sends what the package logs to a file, and the root's warnings to the terminal.

    Returns:
        What `detach_log` takes back.
    """
    handlers: list[logging.Handler] = []
    with contextlib.suppress(OSError):
        handlers.append(_LogFile(path, encoding="utf-8"))
        handlers[0].setFormatter(logging.Formatter(_FORMAT))
        handlers[0].setLevel(logging.INFO)
    if is_root:
        terminal = _Terminal(logging.WARNING)
        handlers.append(terminal)
    logger = logging.getLogger(_PACKAGE)
    logger.setLevel(logging.INFO)
    for handler in handlers:
        logger.addHandler(handler)
    return handlers


def detach_log(handlers: list[logging.Handler]) -> None:
    """Ends what `attach_log` began."""
    for handler in handlers:
        logging.getLogger(_PACKAGE).removeHandler(handler)
        with contextlib.suppress(OSError):
            handler.close()
