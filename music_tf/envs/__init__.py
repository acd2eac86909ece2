"""Environments: what is known of them, lockstep batches, a fast path for Fetch, and ours.

Importing this package registers ours, `music_tf/...-v0`, with Gymnasium.
"""

import gymnasium

from music_tf.envs.toys import register_toys

register_toys()
for _name, _entry, _steps in (
    ("FetchPushConveyor", "conveyor:FetchPushConveyor", 50),
    ("AntGoals", "robots:ant_goals", 200),
    ("Ant", "robots:ant", 200),
    ("HalfCheetah", "robots:half_cheetah", 1000),
):
    if f"music_tf/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(
            id=f"music_tf/{_name}-v0",
            entry_point=f"music_tf.envs.{_entry}",
            max_episode_steps=_steps,
        )
