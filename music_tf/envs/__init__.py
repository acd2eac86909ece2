"""Environments: what is known of them, lockstep batches, a fast path for Fetch, and ours.

Importing this package registers toys and `music_tf/FetchPushConveyor-v0` with Gymnasium.
"""

import gymnasium

from music_tf.envs.toys import register_toys

register_toys()
if "music_tf/FetchPushConveyor-v0" not in gymnasium.registry:
    gymnasium.register(
        id="music_tf/FetchPushConveyor-v0",
        entry_point="music_tf.envs.conveyor:FetchPushConveyor",
        max_episode_steps=50,
    )
