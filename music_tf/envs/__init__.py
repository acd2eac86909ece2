"""Environments: facts about known ones, lockstep batches, a fast path for Fetch, and our own.

Importing this package registers the package's environments, `music_tf/...-v0`, with Gymnasium.
"""

import gymnasium

from music_tf.config import names
from music_tf.envs.toys import register_toys

register_toys()
for _id, _entry, _steps in (
    (names.CONVEYOR, "conveyor:FetchPushConveyor", 50),
    (names.TWO_BLOCKS, "two_blocks:FetchPushTwo", 50),
    (names.POINT_ROBOT, "point_robot:PointRobot", 20),
    (names.HALF_CIRCLE, "point_robot:half_circle", 20),
    ("music_tf/AntGoals-v0", "robots:ant_goals", 200),
    ("music_tf/Ant-v0", "robots:ant", 200),
    ("music_tf/AntBlocks-v0", "robots:AntBlocks", 200),
    ("music_tf/HalfCheetah-v0", "robots:half_cheetah", 1000),
    (names.CHEETAH_VELOCITY, "families:half_cheetah_velocity", 200),
    (names.CHEETAH_DIRECTION, "families:half_cheetah_direction", 200),
    (names.ANT_DIRECTION, "families:ant_direction", 200),
    (names.ANT_HIDDEN_GOAL, "families:ant_hidden_goal", 200),
    (names.HUMANOID_DIRECTION, "families:humanoid_direction", 200),
    (names.WALKER_BODIES, "families:walker_bodies", 200),
    (names.HOPPER_BODIES, "families:hopper_bodies", 200),
):
    if _id not in gymnasium.registry:
        gymnasium.register(id=_id, entry_point=f"music_tf.envs.{_entry}", max_episode_steps=_steps)
for _id, _shown in names.HIDDEN_GOALS.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point="music_tf.envs.hidden_goal:hidden_goal",
            max_episode_steps=names.EPISODE_STEPS[_id],
            kwargs={"shown": _shown},
        )
