"""Films a run: `python experiments/play.py RUN`.

Takes the same arguments as `music-tf play`.
"""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["play", *sys.argv[1:]])
