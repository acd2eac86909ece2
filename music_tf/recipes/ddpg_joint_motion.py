"""`ddpg_music` with a reward made by hand: wherever gripper and object both move in a step.

A control of ours: it pays 1{|dx| > 1 mm and |dy| > 1 mm} (minus 1 under `paper`, as MUSIC does),
and learns nothing about the environment. All else is as in `ddpg_music`.
"""

import dataclasses

from music_tf.config.settings import JointMotionConfig
from music_tf.recipes import ddpg_music

CONFIG = dataclasses.replace(ddpg_music.CONFIG, rewards=("joint_motion",))
LAPTOP = dataclasses.replace(
    ddpg_music.LAPTOP, rewards=("joint_motion",), joint_motion=JointMotionConfig(shift=0.0)
)
LAPTOP_PER_ENVIRONMENT = ddpg_music.LAPTOP_PER_ENVIRONMENT
