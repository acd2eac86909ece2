"""Draws an evaluation episode as pictures, a row a skill: `film_strip.py RUN FILE.png`."""

import argparse
import sys
from pathlib import Path

from music_tf.cli.exits import guarded, leave
from music_tf.errors import EXIT_DONE
from music_tf.process import prepare_tensorflow
from music_tf.storage.run_directory import find_run


def main() -> int:
    """Writes the picture and returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="run directory, or latest")
    parser.add_argument("out", type=Path, help="the .png to write")
    parser.add_argument("--episode", type=int, default=1, help="which, from 1 (default 1)")
    parser.add_argument("--frames", type=int, default=6, help="how many pictures (default 6)")
    parser.add_argument("--skill", type=int, help="one skill, from 0 (default: a row for each)")
    parser.add_argument("--env-id", help="repeats module:Id of your own environment")
    given = parser.parse_args()
    run = find_run(given.run)
    prepare_tensorflow()
    from music_tf.tools.film import strip  # noqa: PLC0415 - numpy: after its threads are set

    strip(run, given.out, given.episode, given.frames, given.skill, given.env_id)
    sys.stdout.write(f"{given.out}\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
