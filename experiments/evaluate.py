"""Evaluates a run, as `music-tf evaluate` does."""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
