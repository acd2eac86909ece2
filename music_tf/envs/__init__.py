"""Environments: what is known of them, lockstep batches, a fast path for Fetch, and ours.

Importing this package registers the toys and the conveyor with Gymnasium.
"""

import gymnasium

from music_tf.config.names import CONVEYOR
from music_tf.envs.toys import register_toys

register_toys()
if CONVEYOR not in gymnasium.registry:
    gymnasium.register(
        id=CONVEYOR,
        entry_point="music_tf.envs.conveyor:FetchPushConveyor",
        max_episode_steps=50,
    )
