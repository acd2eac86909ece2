"""Commands that run side by side in subprocesses, and save when they are asked to stop."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from music_tf.errors import EXIT_HANGING

MUSIC_TF = (sys.executable, "-m", "music_tf")
_FOLLOWER = """
import os, signal, sys
from music_tf.process.children import die_with_parent
die_with_parent(signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Program that becomes another one, which gets SIGTERM when this process dies. The `preexec_fn` of
`subprocess` is not safe with threads."""
_POLL_SECONDS = 0.2
_SHOWN_LINES = 10


class Subprocesses:
    """Runs commands until a signal, a fault or the time ends them; a second Ctrl-C kills."""

    def __init__(self, minutes: float) -> None:
        self._deadline = time.monotonic() + 60.0 * minutes
        self._received: list[int] = []

    def __enter__(self) -> "Subprocesses":
        self._handlers = {
            number: signal.signal(number, lambda received, _: self._received.append(received))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        }
        return self

    def __exit__(self, *fault: object) -> None:
        self._deadline = -math.inf
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @property
    def stopped(self) -> bool:
        return bool(self._received)

    @property
    def over(self) -> bool:
        """Whether no command may begin."""
        return self.stopped or time.monotonic() >= self._deadline

    @property
    def killed(self) -> bool:
        return self._received.count(signal.SIGINT) > 1

    def run(
        self, words: Sequence[str], log: Path, should_end: Callable[[], bool] = lambda: False
    ) -> int:
        """Runs a command with its output in a log, until `should_end`; returns its exit code."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _FOLLOWER, str(os.getpid()), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        try:
            while process.poll() is None:
                time.sleep(_POLL_SECONDS)
                if should_end() or self.over:  # repeatedly, since a starting child ignores signals
                    process.send_signal(signal.SIGKILL if self.killed else signal.SIGTERM)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # after a fault nobody follows it
                process.wait()
        return process.returncode

    def run_twice(
        self,
        words: Callable[[], list[str]],
        log: Path,
        should_end: Callable[[], bool] = lambda: False,
    ) -> int:
        """Does the same; once more if the command hung, lost a rank or was killed."""
        code = self.run(words(), log, should_end)
        lost = code in (EXIT_HANGING, -signal.SIGKILL) and not self.over
        return self.run(words(), log, should_end) if lost else code


def last_lines(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace")
    return [line.rstrip()[:200] for line in text.splitlines() if line.strip()][-_SHOWN_LINES:]
