"""Controls of ours, which MUSIC has to beat to have learned anything."""

import dataclasses

from music_tf.config.fields import with_fields
from music_tf.config.settings import Config, JointMotionConfig
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music

_PUSH = "FetchPush-v4"


def ddpg_music_frozen(preset: Preset, env_id: str = _PUSH) -> Config:
    """`ddpg_music` with a statistics network that never learns: what its random start is worth.

    A control of ours: a random network already pays for some joint motion. Only what `ddpg_music`
    does better than this has been learned. Compare at a gain that fits it: on FetchPush the learned
    network's 1000 pays it next to nothing; `--music.gain 20000` pays it enough to move the block
    as well, if later.
    """
    return with_fields(ddpg_music(preset, env_id), {"music.train": False})


def ddpg_joint_motion(preset: Preset, env_id: str = _PUSH) -> Config:
    """`ddpg_music` with a reward made by hand: wherever gripper and object both move in a step.

    A control of ours: it pays 1{|dx| > 1 mm and |dy| > 1 mm} (minus 1 under `paper`, as MUSIC
    does), and learns nothing about the environment. All else is as in `ddpg_music`.
    """
    by_hand = JointMotionConfig(shift=-1.0 if preset == "paper" else 0.0)
    return dataclasses.replace(ddpg_music(preset, env_id), rewards={"joint_motion": by_hand})
