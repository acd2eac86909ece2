"""Draws learning curves: `python experiments/plot.py RUN...`.

Takes the same arguments as `music-tf plot`.
"""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["plot", *sys.argv[1:]])
