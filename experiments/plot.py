"""Draws learning curves, as `music-tf plot` does."""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["plot", *sys.argv[1:]])
