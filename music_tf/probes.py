"""Tries things in a process of their own, where a crash, a hang or a noisy import does no harm."""

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class Probe:
    """How a probing process ended."""

    code: int | None
    """Exit code, negative for a signal; None where it ran out of time or could not start."""
    output: str
    """What it wrote on its standard output."""
    errors: str = ""
    """What it wrote on its standard error."""
    seconds: float = 0.0
    """Wall-clock time it took."""

    @property
    def ok(self) -> bool:
        """Whether the process ended by itself and without a fault."""
        return self.code == 0

    @property
    def reason(self) -> str:
        """The line that tells best why the process failed, at most 160 characters."""
        if self.code is None and not self.errors:
            return f"no answer within {self.seconds:.0f} s"
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
        return (named or lines or [f"exit code {self.code}"])[-1][:160]


def run_command(
    command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> Probe:
    """Runs `command` without input for at most `seconds`, with `environment` added to ours.

    Returns:
        How it ended; a command that cannot be started is a failed probe, not an exception.
    """
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
    """Runs `code` with this interpreter, as `run_command` does."""
    return run_command([sys.executable, "-c", code], seconds=seconds, environment=environment)
