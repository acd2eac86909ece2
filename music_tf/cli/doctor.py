"""`music-tf doctor`: checks the installation and says how to mend it."""

from music_tf.tools.doctor import main

__all__ = ["main"]
