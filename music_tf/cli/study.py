"""`music-tf study FILE`: trains the runs of a comparison, several side by side."""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from music_tf.config.names import suggestion
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process import available_cores

_USAGE = """\
Trains what is missing, goes on with what was cut off, on this day or another, and writes a CSV for
each run that has ended. Ctrl-C and the end of --max-minutes let the runs save (exit code 75: the
same command goes on); a second Ctrl-C ends them at once. A run that fails is reported and does not
stop the others (exit code 3 at the end). Each run has one thread.
"""


def main(arguments: Sequence[str], trainer: Sequence[str] = ()) -> int:
    """Trains what a study lacks, or shows it, and returns the exit code.

    Args:
        arguments: What stands after `study`.
        trainer: The words of another command that takes a verb and its arguments.

    Raises:
        MusicError: The command line or the study is wrong, or it cannot be run here.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.help:
        sys.stdout.write(f"{parser.format_help().rstrip()}\n")
        return EXIT_DONE
    if given.file is None:
        raise UsageError("FILE: expected a study\nfor example: music-tf study FILE.py --list")
    if given.jobs < 1:
        raise UsageError(f"--jobs: expected a whole number of at least 1, got {given.jobs}")
    if not given.max_minutes > 0.0:
        raise UsageError(f"--max-minutes: expected a number above 0, got {given.max_minutes}")
    from music_tf.tools import study  # noqa: PLC0415 - numpy

    if given.list or given.dry_run:
        return study.show_plan(given.file, given.out, commands=given.dry_run)
    asked = (given.file, given.out, given.jobs, given.max_minutes)
    return study.train_missing(*asked, trainer or study.TRAINER)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the other verbs do."""

    def error(self, message: str) -> NoReturn:
        options = [option for action in self._actions for option in action.option_strings]
        unknown = re.search(r"--[\w-]+$", message)
        raise UsageError(message + (suggestion(unknown[0], options) if unknown else ""))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="music-tf study",
        description=_USAGE,
        epilog="example: music-tf study experiments/studies/mi_matters.py --max-minutes 100",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("--help", "-h", action="store_true", help="show this and end")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="defines STUDY")
    parser.add_argument("--list", action="store_true", help="show the runs and their states")
    parser.add_argument("--dry-run", action="store_true", help="show the commands, start nothing")
    cores = available_cores()
    parser.add_argument(
        "--jobs",
        type=int,
        default=cores,
        help="runs side by side (default: the cores, %(default)s)",
    )
    parser.add_argument(
        "--max-minutes", type=float, default=math.inf, help="save and stop after these"
    )
    out = Path("experiments/results")
    parser.add_argument(
        "--out", type=Path, default=out, help="folder of the stored results (default %(default)s)"
    )
    return parser
