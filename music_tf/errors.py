"""Exceptions that end a run, each with the exit code of the process, and results of checks."""

import dataclasses
import logging
import os
import re
import traceback
from collections.abc import Mapping

EXIT_DONE = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_NUMBERS = 4
EXIT_STOPPED = 75
EXIT_HANGING = 86
FROM_USERS = (Exception, SystemExit)
"""Exceptions of user code that are caught; `sys.exit` in it must not end the process."""

_FOREIGN = re.compile(
    rf"<(?!ipython|stdin)|{re.escape(os.path.dirname(__file__) + os.sep)}"
    rf"|{re.escape(os.path.dirname(os.__file__))}/(?!(site|dist)-packages/)"
    r"|.*/(site|dist)-packages/(gymnasium|numpy|tensorflow|keras)/"
)
"""Matches the files of this package, the standard library, Gymnasium, numpy, TensorFlow, Keras."""
_INSTALLED = re.compile(r".*/(site|dist)-packages/")
_LONGEST = 200
_LOGGER = logging.getLogger(__name__)


def place_of(error: BaseException) -> str:
    """`file.py:line in function` of the user's innermost frame; installed libraries only alone."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [
        (code.co_filename, f"{os.path.basename(code.co_filename)}:{line} in {code.co_name}")
        for code, line in ((frame.f_code, line) for frame, line in frames)
        if not _FOREIGN.match(code.co_filename)
    ]
    users = [place for place in places if not _INSTALLED.match(place[0])] or places
    return users[-1][1] if users else ""


def error_line(error: BaseException) -> str:
    """An exception of the user's code as one line with its place; the traceback is logged."""
    text = f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST].rstrip(": ")
    place = place_of(error)
    text += f" at {place}" if place else ""
    _LOGGER.info("%s", text, exc_info=error)
    return text


class MusicError(Exception):
    """A fault with a known cause, which is reported without a traceback."""

    exit_code = EXIT_BUG


class UsageError(MusicError):
    """A wrong command line, configuration or run directory."""

    exit_code = EXIT_USAGE


class ModuleNotAllowed(UsageError):
    """A file names a module of the user's that the user has neither typed nor allowed."""


class EnvironmentFault(MusicError):
    """Something outside this package is missing or broken, such as bad observations and rewards."""

    exit_code = EXIT_ENVIRONMENT


class NoMpi(EnvironmentFault):
    """This rank cannot load MPI, so it cannot inform the other ranks."""


class NumbersFault(MusicError):
    """An action, loss, gradient or weight is not finite, or ranks differ."""

    exit_code = EXIT_NUMBERS

    def __init__(self, text: str, evidence: Mapping[str, object] | None = None) -> None:
        super().__init__(text)
        self.evidence: Mapping[str, object] = evidence or {}


class Hanging(MusicError):
    """No progress for longer than `--hang-after`, or a host or process of the job is gone."""

    exit_code = EXIT_HANGING


class RankLost(Hanging):
    """Another rank of an elastic job is gone."""


class LearnerEnded(MusicError):
    """The learner has ended the run with an exit code, and reports the reason itself."""

    def __init__(self, code: int) -> None:
        super().__init__("")
        self.exit_code = code


class Stopped(MusicError):
    """The run was asked to stop, has saved, and can be resumed."""

    exit_code = EXIT_STOPPED


_BY_CODE: Mapping[int | None, type[MusicError]] = {
    kind.exit_code: kind for kind in (UsageError, EnvironmentFault, NumbersFault, Stopped)
}


def fault_of(code: int | None) -> type[MusicError]:
    """Returns the kind of fault that another process has reported by its exit code."""
    return _BY_CODE.get(code, MusicError)


@dataclasses.dataclass(frozen=True)
class Finding:
    """Result of one check, of the installation or of an environment."""

    detail: str
    cure: str = ""
    """What to do; empty without a fault."""
    cause: str = ""
    """Cause of a fault, unless `detail` has it."""
    warning: bool = False
    """Whether training works anyway, with a warning."""
    name: str = ""

    @property
    def ok(self) -> bool:
        return not self.cure or self.warning

    @property
    def state(self) -> str:
        return "FAIL" if not self.ok else "warn" if self.cure else "ok"

    def __str__(self) -> str:
        detail = self.detail.replace("\n", f"\n{'':22}")
        lines = [f"{self.state:<4}  {self.name:<14}  {detail}"]
        lines += [f"      cause: {self.cause}"] if self.cause else []
        lines += [f"      cure:  {self.cure}"] if self.cure else []
        return "\n".join(lines)
