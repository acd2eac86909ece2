"""`music-tf launch --restarts N`: resumes a job that was lost, on what is left of its hosts."""

import contextlib
import shlex
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from music_tf.cli.hosts import run_on
from music_tf.cli.job import Launch
from music_tf.errors import EXIT_HANGING, Hanging, UsageError
from music_tf.process.launcher import check_topology
from music_tf.process.signals import stop_requested
from music_tf.reading.command import TrainCommand, resume_line
from music_tf.reading.stored import CONFIG_NAME
from music_tf.storage.lock import refuse_if_in_use
from music_tf.storage.run_directory import ended_at_once

_ANSWER_SECONDS = 20.0
_FREE_SECONDS, _LOOK_SECONDS = 30.0, 0.2
_SIGNALS = 128
"""Exit codes above it are those of a signal."""


def run_with_restarts(
    launch: Launch, train: TrainCommand, run: Callable[[Launch, TrainCommand], int]
) -> int:
    """Runs a job until it ends by itself, or was lost once more than it may be restarted.

    A job that is lost before it has saved another epoch counts twice: it may never come further.
    """
    directory = train.run_dir or Path()
    left, start, saved = launch.restarts, _epochs(directory)[0], -1
    while True:
        lost: Hanging | None = None
        try:
            code = run(launch, train)
        except Hanging as fault:
            code, lost = fault.exit_code, fault
        before, (saved, done) = saved, _epochs(directory)
        left -= 1 if saved > before else 2
        killed = code > _SIGNALS and not stop_requested()
        if left < 0 or not (code == EXIT_HANGING or killed):
            if lost is not None:
                raise lost
            return code
        if stop_requested():
            raise ended_at_once(directory, resume_line(train, directory, launch.options))
        _wait_until_free(directory)
        ranks = launch.ranks
        launch = _on_what_is_left(launch, train, begun=saved > start or not train.resume)
        cause = str(lost or f"code {code}").partition("\n")[0].removesuffix("; to resume:")
        hosts = f" of {', '.join(launch.hosts)}" if launch.hosts else ""
        other = "" if launch.ranks == ranks or train.learners else ", whose sums round otherwise"
        sys.stderr.write(
            f"music-tf: {cause}; goes on after epoch {saved} on {launch.ranks} ranks{hosts}{other}"
            f"; epochs repeated: {max(0, done - saved)}, restarts left: {left}\n"
        )


def _on_what_is_left(launch: Launch, train: TrainCommand, begun: bool) -> Launch:
    """Returns a job that resumes on the hosts that answer, on as many ranks as fit."""

    def answers(host: str) -> bool:
        return run_on(host, [sys.executable, "-c", "import music_tf"], _ANSWER_SECONDS)

    with ThreadPoolExecutor() as pool:
        answered = [True, *pool.map(answers, list(launch.hosts)[1:])]  # the first is this one
    hosts = {host: n for (host, n), ok in zip(launch.hosts.items(), answered, strict=False) if ok}
    options = launch.options
    for ranks in range(min(launch.ranks, sum(hosts.values()) or launch.ranks), 0, -1):
        with contextlib.suppress(UsageError):
            check_topology(train.config.workers, ranks, train.learners, train.device, fixed=True)
            break
    else:
        raise Hanging(f"no number of ranks fits on the hosts that answer: {', '.join(hosts)}")
    if (hosts, ranks) != (launch.hosts, launch.ranks):
        listed = ",".join(f"{host}:{slots}" for host, slots in hosts.items())
        words = ["-n", str(ranks), "--restarts", str(launch.restarts)]
        options = shlex.join([*words, *(["--hosts", listed] if listed else [])])
    command, directory = launch.command, train.run_dir or Path()
    if begun and (directory / CONFIG_NAME).exists():
        words = shlex.split(resume_line(train, directory, options))
        command = words[words.index("train") :]
    return launch._replace(options=options, ranks=ranks, hosts=hosts, command=command)


def _wait_until_free(directory: Path) -> None:
    """Waits until the last process of the old job has let go of the run directory."""
    end = time.monotonic() + _FREE_SECONDS
    while time.monotonic() < end and not stop_requested():
        with contextlib.suppress(UsageError):
            refuse_if_in_use(directory)
            return
        time.sleep(_LOOK_SECONDS)


def _epochs(directory: Path) -> tuple[int, int]:
    """Returns the epoch of the newest checkpoint, 0 without one, and the last row of metrics."""
    from music_tf.storage.checkpoint import epoch_of  # noqa: PLC0415 - numpy
    from music_tf.storage.metrics import CSV_NAME  # noqa: PLC0415

    saved = [epoch_of(folder.name) or 0 for folder in directory.glob("checkpoints/epoch_*")]
    done = 0
    with contextlib.suppress(OSError):
        done = (directory / CSV_NAME).read_bytes().count(b"\n") - 1
    return max(saved, default=0), done
