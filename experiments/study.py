"""Runs a study: `python experiments/study.py experiments/studies/mi_matters.py`.

Trains what is missing, goes on with what was cut off, on this day or another, and writes a CSV
for each run that has ended. Ctrl-C and the end of --max-minutes let the runs save (exit code 75:
the same command goes on); a second Ctrl-C ends them at once. A run that fails is reported and does
not stop the others (exit code 3 at the end). docs/results.md says what a study file is.
"""

import argparse
import contextlib
import fcntl
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from studying.board import Board, summary
from studying.plan import load_study, runs_of
from studying.pool import (
    BLOCKED,
    FAILED,
    STOPPED,
    WAITING,
    Pool,
    Requests,
    next_words,
)

from music_tf.cli.exits import guarded, leave
from music_tf.errors import (
    EXIT_DONE,
    EXIT_ENVIRONMENT,
    EXIT_STOPPED,
    EnvironmentFault,
    UsageError,
)
from music_tf.process import available_cores
from music_tf.storage.run_directory import runs_root

TRAINER = (sys.executable, "-m", "music_tf")


def main(arguments: Sequence[str] | None = None, trainer: Sequence[str] = TRAINER) -> int:
    """Runs a study, or shows what it would do, and returns the exit code.

    Raises:
        UsageError: The command line or the study is wrong; nothing was started.
        EnvironmentFault: The folder of the runs cannot be written.
    """
    given = _arguments(arguments)
    if given.jobs < 1:
        raise UsageError(f"--jobs: expected a whole number of at least 1, got {given.jobs}")
    if not given.max_minutes > 0.0:
        raise UsageError(f"--max-minutes: expected a number above 0, got {given.max_minutes}")
    study = load_study(given.study)
    runs = runs_of(given.study.stem, study)
    if given.list or given.dry_run:
        return _show_plan(Pool(runs, trainer, given.out, given.jobs), given.dry_run)
    with _alone(runs_root() / "studies" / given.study.stem):
        pool = Pool(runs, trainer, given.out, given.jobs)  # what another runner did counts
        with Board(pool) as board:
            board.say(f"{study.question} {summary(pool)}")
            requests = Requests(given.max_minutes)
            pool.work(requests, board.show)
    return _conclude(pool, board, requests)


def _show_plan(pool: Pool, commands: bool) -> int:
    """Writes each run with its state, or the commands that are missing."""
    for run in pool.runs:
        if not commands:
            sys.stdout.write(f"{pool.states[run.name]:8} {run.name}: {run.command}\n")
        elif pool.states[run.name] == WAITING:
            sys.stdout.write(f"{shlex.join(['music-tf', *next_words(run)])}\n")
    return EXIT_DONE


def _conclude(pool: Pool, board: Board, requests: Requests) -> int:
    """Reports what failed, and returns the exit code."""
    for run in pool.runs:
        for line in pool.faults.get(run.name, ()):
            board.say(f"{run.name}: {line}")
    board.say(f"{pool.runs[0].study}: {summary(pool)}")
    left = sum(pool.count(state) for state in (STOPPED, WAITING))
    if requests.to_end_at_once() or left:
        return EXIT_STOPPED
    return EXIT_ENVIRONMENT if pool.count(FAILED) or pool.count(BLOCKED) else EXIT_DONE


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps a second runner off the runs of a study."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise EnvironmentFault(f"{folder}: cannot be written ({error.strerror})") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{folder}: another runner is at work on this study") from error
        yield


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path, help="a file of experiments/studies")
    parser.add_argument("--list", action="store_true", help="show the runs and their states")
    parser.add_argument("--dry-run", action="store_true", help="show the commands, start nothing")
    parser.add_argument(
        "--jobs",
        type=int,
        default=available_cores(),
        help="runs side by side (default: the cores of this machine, here %(default)s)",
    )
    parser.add_argument(
        "--max-minutes", type=float, default=math.inf, help="save and stop after these"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results"),
        help="folder of the stored results (default %(default)s)",
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    leave(guarded(main))
