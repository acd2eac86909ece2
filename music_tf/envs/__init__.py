"""Environments: facts about known ones, lockstep batches, a fast path for Fetch, and our own.

Importing this package registers the package's environments, `music_tf/...-v0`, with Gymnasium.
"""

from typing import Any

import gymnasium

from music_tf.config import names

_ENTRIES = {
    "music_tf/PointReach-v0": "toys:PointReach",
    "music_tf/PointPush-v0": "toys:PointPush",
    "music_tf/PointPushTerminating-v0": "toys:PointPush",
    "music_tf/PointPushCrowd-v0": "toys:PointPushCrowd",
    names.BOX: "toys:UnitBox",
    names.SQUARE: "toys:Square",
    names.CONVEYOR: "conveyor:FetchPushConveyor",
    names.TWO_BLOCKS: "two_blocks:FetchPushTwo",
    names.POINT_ROBOT: "point_robot:PointRobot",
    names.HALF_CIRCLE: "point_robot:PointRobot",
    "music_tf/AntGoals-v0": "robots:ant_goals",
    "music_tf/Ant-v0": "robots:ant",
    "music_tf/AntBlocks-v0": "robots:AntBlocks",
    "music_tf/HalfCheetah-v0": "robots:half_cheetah",
    names.CHEETAH_VELOCITY: "families:half_cheetah_velocity",
    names.CHEETAH_DIRECTION: "families:half_cheetah_direction",
    names.ANT_DIRECTION: "families:ant_direction",
    names.ANT_HIDDEN_GOAL: "families:ant_hidden_goal",
    names.HUMANOID_DIRECTION: "families:humanoid_direction",
    names.WALKER_BODIES: "families:walker_bodies",
    names.HOPPER_BODIES: "families:hopper_bodies",
    **dict.fromkeys(names.HIDDEN_GOALS, "hidden_goal:hidden_goal"),
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "music_tf/PointPushTerminating-v0": {"terminate_when_reached": True},
    names.HALF_CIRCLE: {"layout": "half_circle"},
    **{hidden: {"shown": shown} for hidden, shown in names.HIDDEN_GOALS.items()},
}
for _id, _entry in _ENTRIES.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point=f"music_tf.envs.{_entry}",
            max_episode_steps=names.EPISODE_STEPS[_id],
            kwargs=_OPTIONS.get(_id, {}),
        )
