"""Faults that end a run, each with the exit code that scripts and schedulers see."""

from collections.abc import Mapping

EXIT_DONE = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_NUMBERS = 4
EXIT_STOPPED = 75
EXIT_HANGING = 86
FROM_USERS = (Exception, SystemExit)
"""What code of users may raise: not even `sys.exit` in it ends the process, which is ours. Ctrl-C
is meant for us."""


class MusicError(Exception):
    """A fault with a known cause: its text is all that the user needs, without a traceback."""

    exit_code = EXIT_BUG


class UsageError(MusicError):
    """A wrong command line, configuration or run directory."""

    exit_code = EXIT_USAGE


class ModuleNotAllowed(UsageError):
    """A file asks for a module of the user's that nobody has typed or allowed."""


class EnvironmentFault(MusicError):
    """Something is missing or broken outside our code, bad observations and rewards included."""

    exit_code = EXIT_ENVIRONMENT


class NoMpi(EnvironmentFault):
    """This rank cannot load MPI, so it cannot tell the others, which may be able to."""


class NumbersFault(MusicError):
    """Our own numbers went bad: actions, losses, gradients, or ranks that differ."""

    exit_code = EXIT_NUMBERS

    def __init__(self, text: str, evidence: Mapping[str, object] | None = None) -> None:
        """Takes the message and, as evidence for debugging, the arrays that it is about."""
        super().__init__(text)
        self.evidence: Mapping[str, object] = evidence or {}


class Hanging(MusicError):
    """No progress for longer than `--hang-after`; only where the process may not be ended."""

    exit_code = EXIT_HANGING


class LearnerEnded(MusicError):
    """The rank that learns has ended the run, and says why itself."""

    def __init__(self, code: int) -> None:
        """Takes the exit code of that rank."""
        super().__init__("")
        self.exit_code = code


class HostLost(MusicError):
    """A host of the job is gone, and what ran there with it."""

    exit_code = EXIT_HANGING


class Stopped(MusicError):
    """The run was asked to stop, has saved, and can be resumed."""

    exit_code = EXIT_STOPPED
