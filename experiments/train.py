"""Trains a recipe: `mpirun -n 2 python -m mpi4py experiments/train.py ddpg_her ...`.

Takes the same arguments as `music-tf train`.
"""

import sys

from music_tf.cli import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
