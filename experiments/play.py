"""Films a run, as `music-tf play` does."""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["play", *sys.argv[1:]])
