"""`music-tf evaluate RUN`: success rate and behaviour of a trained run."""

import sys

from music_tf.cli.options import asks_for_help, one_word, typed_env_id, whole_number
from music_tf.cli.process import available_cores, load_tensorflow, prepare_tensorflow
from music_tf.cli.runs import find_run
from music_tf.config.tokens import split
from music_tf.errors import EXIT_DONE

USAGE = """\
usage: music-tf evaluate RUN [--episodes 100] [--env-id module:Id]

Plays the latest policy of a run without exploration, writes a table of its success rate and
behaviour, and RUN/evaluation.json. RUN is a run directory, or latest.

  --episodes N         how many episodes; default 100
  --env-id module:Id   repeats the id of your own environment, which no file may import

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
    words = split(tuple(arguments), {"episodes": 1, "env_id": 1})
    run = find_run(one_word(words, "RUN", "evaluate latest"))
    episodes = whole_number(words, "episodes", 100)
    env_id = typed_env_id(words)
    prepare_tensorflow(available_cores())
    load_tensorflow()
    from music_tf.training.inspection import evaluate_run  # noqa: PLC0415 - TensorFlow

    evaluate_run(run, episodes, env_id)
    return EXIT_DONE
