"""Evaluates a run: `python experiments/evaluate.py RUN`.

Takes the same arguments as `music-tf evaluate`.
"""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
