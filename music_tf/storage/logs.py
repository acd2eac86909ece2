"""Each rank's log file, and warnings of the root on the terminal."""

import contextlib
import logging
import math
import sys
import time
from pathlib import Path
from typing import TextIO

_PACKAGE = "music_tf"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_QUIET_SECONDS = 600.0
_LOGGER = logging.getLogger(__name__)


class Seldom:
    """Warns of a disk that fails: once in ten minutes, however many files it is about."""

    def __init__(self) -> None:
        self._quiet_until = -math.inf

    def __call__(self, what: str, error: OSError, path: Path) -> None:
        """Says that something was not written to a file, unless it was said a moment ago."""
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _QUIET_SECONDS
            _LOGGER.warning("%s not written, training goes on: %s (%s)", what, error, path)


class _LogFile(logging.FileHandler):
    """A log file; a full disk loses lines, never the run."""

    def __init__(self, path: Path, complain: Seldom) -> None:
        super().__init__(path, encoding="utf-8")
        self._complain = complain

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drops the line."""
        error = sys.exception()
        if isinstance(error, OSError):
            self._complain("log", error, Path(self.baseFilename))


class _Terminal(logging.Handler):
    """Writes to whatever `sys.stderr` is at the time, so that a progress bar can make room."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the message without a time."""
        stream: TextIO = sys.stderr
        with contextlib.suppress(OSError, ValueError):
            stream.write(f"{record.levelname.lower()}: {self.format(record)}\n")


def attach_log(path: Path, is_root: bool, complain: Seldom) -> list[logging.Handler]:
    """Sends what the package logs to a file, and the root's warnings to the terminal.

    Returns:
        What `detach_log` takes back.
    """
    logger = logging.getLogger(_PACKAGE)
    logger.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [_Terminal(logging.WARNING)] if is_root else []
    for handler in handlers:
        logger.addHandler(handler)
    try:
        file = _LogFile(path, complain)
    except OSError as error:
        complain("log", error, path)
        return handlers
    file.setFormatter(logging.Formatter(_FORMAT))
    file.setLevel(logging.INFO)
    logger.addHandler(file)
    return [*handlers, file]


def detach_log(handlers: list[logging.Handler]) -> None:
    """Ends what `attach_log` began."""
    for handler in handlers:
        logging.getLogger(_PACKAGE).removeHandler(handler)
        with contextlib.suppress(OSError):
            handler.close()
