"""Copies parts of a run into a folder of weights: `export_weights.py RUN FOLDER --parts A,B`.

The folder is what `music-tf train RECIPE --init-from FOLDER` starts from. Its `meta.json` says from
which recipe, environment and seed it comes, how long that was trained, and the checkpoint's digest.
"""

import argparse
import sys
from pathlib import Path

from music_tf.cli.exits import guarded, leave
from music_tf.config.start import parse_parts, parts_of
from music_tf.config.stored import read_run, stored_env_id
from music_tf.errors import EXIT_DONE
from music_tf.storage.run_directory import find_run


def main() -> int:
    """Writes the folder and returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="run directory, or latest")
    parser.add_argument("folder", type=Path, help="new, or a folder of weights to replace")
    parser.add_argument("--parts", required=True, help="as in actor,normalizer")
    given = parser.parse_args()
    from music_tf.storage.start import export_weights  # noqa: PLC0415 - numpy

    directory = find_run(given.run)
    run = read_run(directory, stored_env_id(directory))
    facts = {"recipe": run.recipe, "env_id": run.config.env_id, "seed": run.config.seed}
    parts = parse_parts(given.parts, parts_of(map(type, run.config.rewards.values())))
    export_weights(directory / "checkpoints", given.folder, parts, facts)
    sys.stdout.write(f"{given.folder}\n")
    return EXIT_DONE


if __name__ == "__main__":
    leave(guarded(main))
