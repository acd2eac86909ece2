"""`music-tf report RUN...`: one page about one or many runs."""

import sys
from pathlib import Path

from music_tf.cli.options import asks_for_help, say_left_out, several_runs
from music_tf.config.tokens import split
from music_tf.errors import EXIT_DONE
from music_tf.storage.run_directory import find_run

USAGE = """\
usage: music-tf report RUN... [--out report.html]

Writes one page that holds everything: settings, learning curves, tables of behaviour and of
skills, object paths, films. It needs no network. RUN is a run directory (also of a run still
going), or latest; what is no run or is damaged is named and left out. Films are those of
RUN/videos, which music-tf play makes.

  --out FILE           an .html file; default report.html

example: music-tf report runs/FetchPush-v4/*/* --out push.html
"""


def main(arguments: list[str]) -> int:
    """Writes the page and returns 0.

    Raises:
        MusicError: The command line is wrong, or there is nothing to report.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    words = split(tuple(arguments), {"out": 1})
    runs, files = several_runs(words, "report", find_run)
    out = Path(words.options.get("out", ("report.html",))[0])
    from music_tf.tools.report import write_report  # noqa: PLC0415 - numpy

    damaged = write_report(runs, out)
    say_left_out("no run directory", files)
    say_left_out("damaged, report it alone to see where", damaged)
    sys.stdout.write(f"{out}\n")
    return EXIT_DONE
