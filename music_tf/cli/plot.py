"""`music-tf plot RUN...`: learning curves of one or many runs."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from music_tf.cli.options import asks_for_help, say_left_out, several_runs
from music_tf.config.names import suggestion
from music_tf.config.stored import CONFIG_NAME
from music_tf.config.tokens import Words, split
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.storage.run_directory import LATEST, find_run, runs_root

USAGE = """\
usage: music-tf plot RUN... [--metric NAME...] [--axis steps] [--out curves.png] [--each]

Draws learning curves. Runs that differ in their seed alone share a line: the interquartile mean
over the seeds, each seed thinly behind, a 95 % bootstrap band from three on. RUN is a run directory
(also of a run still going), latest, or a copy of a metrics.csv; copies in one folder share a line,
and CONDITION_seedN.csv a line for each condition. What cannot be drawn is named and left out.

  --metric NAME...     columns of metrics.csv, a panel each; default eval/success_rate, where the
                       runs have it, else eval/object_comotion_m; runs go before it
  --axis NAME          steps (default) or minutes
  --out FILE           a .png, .svg or .pdf file; default curves.png
  --each               one line a run, without bands; else of several runs of one seed the longest
                       is drawn

example: music-tf plot runs/FetchPush-v4/*/* --axis minutes --out push.png
"""


def main(arguments: list[str]) -> int:
    """Draws the curves and returns 0.

    Raises:
        MusicError: The command line is wrong, or there is nothing to draw.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    words = split(tuple(arguments), {"metric": None, "axis": 1, "out": 1, "each": 0})
    asked = words.options.get("metric", ())
    if not words.positional:
        _refuse_runs(asked)
    sources, files = several_runs(words, "plot", _source)
    paths = {os.path.realpath(path): path for path in sources}.values()  # each run once
    from music_tf.tools.curves import (  # noqa: PLC0415 - numpy
        AXES,
        FORMATS,
        REPEATED,
        by_settings,
        choose_metrics,
        draw_curves,
        left_out,
        load_begun,
        without_repeats,
    )

    axis = _one_of(words, "axis", "steps", tuple(AXES))
    out = Path(words.options.get("out", ("curves.png",))[0])
    if out.suffix.lower() not in FORMATS:
        raise UsageError(
            f"--out: expected a file that ends in {', '.join(FORMATS)}, got {str(out)[:200]!r}"
            + suggestion(out.suffix, FORMATS)
        )
    begun, early, damaged = load_begun(list(paths))
    each = "each" in words.options
    runs, repeats = (begun, []) if each else without_repeats(by_settings(begun))
    _refuse_runs(name for name in asked if not any(name in run.columns for run in runs))
    metrics = choose_metrics(runs, asked, axis)
    draw_curves(runs, metrics, axis, out, each)
    say_left_out("no run directory and no CSV file", files)
    say_left_out("no epoch yet", early)
    say_left_out("damaged, plot it alone to see where", damaged)
    say_left_out(REPEATED, repeats)
    for lack, labels in left_out(runs, metrics, axis).items():
        say_left_out(lack, labels)
    sys.stdout.write(f"{out}\n")
    return EXIT_DONE


def _refuse_runs(names: Iterable[str]) -> None:
    """Refuses a run among the names of metrics: `--metric` takes all words that follow."""
    for name in names:
        folder = runs_root() / name
        if name == LATEST or os.path.exists(name) or os.path.isfile(folder / CONFIG_NAME):
            raise UsageError(
                f"--metric: expected names of columns, got the run {name[:200]!r}\n"
                f"put the runs before --metric, as in music-tf plot {name[:200]} --metric NAME"
            )


def _source(text: str) -> Path:
    """Returns a CSV file as it is, and a run directory wherever `find_run` finds it."""
    return Path(text) if text.endswith(".csv") else find_run(text)


def _one_of(words: Words, name: str, default: str, known: tuple[str, ...]) -> str:
    (text,) = words.options.get(name, (default,))
    if text not in known:
        raise UsageError(
            f"--{name}: expected one of {', '.join(known)}, got {text[:80]!r}"
            + suggestion(text, known)
        )
    return text
