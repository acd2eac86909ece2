"""Logs of a run: a file for each rank, and the terminal. A full disk never ends the run."""

import contextlib
import logging
import math
import sys
import time
from pathlib import Path

_LOGGER = logging.getLogger(__name__)


def log_path(path: Path, rank: int) -> Path:
    return path / "logs" / f"rank_{rank:04d}.log"


class RateLimitedWarning:
    """Warns of a failing disk at most once in ten minutes."""

    def __init__(self) -> None:
        self._quiet_until = -math.inf

    def __call__(self, what: str, error: OSError, path: Path) -> None:
        """Warns that `what` was not written to a file, unless a warning is recent."""
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + 600.0
            _LOGGER.warning("%s not written, training continues: %s (%s)", what, error, path)


class LogFile(logging.FileHandler):
    """A log file that drops lines if the disk is full."""

    def __init__(self, path: Path, warn: RateLimitedWarning) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._warn = warn

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        error = sys.exception()
        if isinstance(error, OSError):
            self._warn("log", error, Path(self.baseFilename))


class Terminal(logging.Handler):
    """Writes to the present `sys.stderr`, which a progress bar may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{record.levelname.lower()}: {self.format(record)}\n")
