"""Subprocesses, and how they end with their parent."""

import ctypes
import dataclasses
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from music_tf.errors import EnvironmentFault

PIP_INSTALL = f"{shlex.quote(sys.executable)} -m pip install"
"""Command that installs a package into the running Python environment."""


def check_extra(option: str, package: str, extra: str, otherwise: str = "") -> None:
    # `package` is the name at its import; `extra` of music_tf installs it.
    if importlib.util.find_spec(package) is None:
        raise EnvironmentFault(
            f"{option}: expected the package {package}, which is not installed\n"
            f"install it in this environment: {PIP_INSTALL} 'music_tf[{extra}]'{otherwise}"
        )


def die_with_parent(number: int) -> None:
    """Asks Linux to send this process a signal once its parent has died; elsewhere does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, number, 0, 0, 0)  # PR_SET_PDEATHSIG


def death_follower() -> Callable[[], None]:
    """Returns what a child runs first: it gets SIGTERM if we die, and ignores SIGUSR1 at first."""
    parent = os.getpid()

    def follow() -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(0)

    return follow


@dataclasses.dataclass(frozen=True)
class Probe:
    """Exit code and output of a subprocess."""

    code: int | None
    """Exit code, negative for a signal; None if it ran out of time or could not start."""
    output: str
    errors: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def reason(self) -> str:
        """The line that best explains the failure, at most 160 characters."""
        if self.code is None and not self.errors:
            return f"no answer within {self.seconds:.0f} s"
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
        return (named or lines or [f"exit code {self.code}"])[-1][:160]


def run_command(
    command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> Probe:
    """Runs `command` without input, with `environment` added to ours; never raises."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**os.environ, **(environment or {})},
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return Probe(None, "", "", seconds)
    except OSError as error:
        return Probe(None, "", f"{type(error).__name__}: {error}", time.monotonic() - start)
    return Probe(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def run_python(code: str, *, seconds: float, environment: Mapping[str, str] | None = None) -> Probe:
    return run_command([sys.executable, "-c", code], seconds=seconds, environment=environment)
