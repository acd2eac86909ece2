"""`music-tf evaluate RUN`: success rate and behaviour of a trained run."""

import os
import re
import sys
from pathlib import Path

from music_tf.cli.options import asks_for_help, one_word, typed_env_id, whole_number
from music_tf.config.tokens import Words, split
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process import prepare_tensorflow
from music_tf.storage.run_directory import find_run

COUNTS = {"episodes": 1, "full": 0, "export": 1, "minari": 1, "env_id": 1, "allow_import": 0}
_DATASET = re.compile(r"[\w-]+(/[\w-]+)*-v\d+", re.ASCII)

USAGE = """\
usage: music-tf evaluate RUN [--episodes 100] [--full] [--export FILE.npz] [--minari ID]
                             [--env-id module:Id | --allow-import]

Plays the latest policy of a run without exploration, writes a table of its success rate and
behaviour, and RUN/evaluation.json. RUN is a run directory, or latest.

  --episodes N         how many episodes; default 100
  --full               judges control too: coverage, contact, spread, information between robot
                       and object (docs/metrics.md explains them); takes a minute longer
  --export FILE.npz    writes the episodes of our policy as plain arrays
  --minari ID          writes them as a Minari dataset, such as push/music-v0
  --env-id module:Id   repeats the id of your own environment, which no file may import
  --allow-import       lets the run import the module of your own environment that it names

example: music-tf evaluate latest
"""


def main(arguments: list[str]) -> int:
    """Evaluates a run and returns 0.

    Raises:
        MusicError: The command line is wrong, or the run cannot be evaluated.
    """
    if asks_for_help(arguments):
        sys.stdout.write(USAGE)
        return EXIT_DONE
    words = split(tuple(arguments), COUNTS)
    run = find_run(one_word(words, "RUN", "evaluate latest"))
    episodes = whole_number(words, "episodes", 100)
    env_id = typed_env_id(words, run)
    npz = _npz(words)
    minari = _minari(words)
    prepare_tensorflow()
    from music_tf.runs.inspection import evaluate_run  # noqa: PLC0415 - numpy, MuJoCo
    from music_tf.tools.export import exporter  # noqa: PLC0415 - numpy, MuJoCo

    full = "full" in words.options
    evaluate_run(run, episodes, env_id, full=full, export=exporter(npz, minari))
    return EXIT_DONE


def _npz(words: Words) -> Path | None:
    """Returns the file to export to, if any."""
    if "export" not in words.options:
        return None
    (text,) = words.options["export"]
    path = Path(text)
    if path.suffix != ".npz":
        raise UsageError(f"--export: expected a file that ends in .npz, got {text[:200]!r}")
    if not os.path.isdir(path.parent):
        raise UsageError(f"--export: expected a folder, got {str(path.parent)[:200]!r}")
    return path


def _minari(words: Words) -> str | None:
    """Returns the id of the dataset to make, if any."""
    if "minari" not in words.options:
        return None
    (text,) = words.options["minari"]
    if not _DATASET.fullmatch(text):
        raise UsageError(f"--minari: expected an id such as push/music-v0, got {text[:80]!r}")
    return text
