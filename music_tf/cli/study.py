"""`music-tf study FILE`: trains the runs of a comparison, several side by side."""

from music_tf.tools.study import main

__all__ = ["main"]
