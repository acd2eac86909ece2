"""Environments: what is known of them, lockstep batches, a fast path for Fetch, and toys.

Importing this package registers the toy environments with Gymnasium.
"""

from music_tf.envs.toys import register_toys

register_toys()
