"""Controls of ours, which MUSIC has to beat to have learned anything."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from music_tf.config.fields import with_fields
from music_tf.config.settings import Config, JointMotionConfig, PaidConfig
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music

_PUSH = "FetchPush-v4"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomRewardConfig(PaidConfig):
    """A number drawn anew from [0, 1] each time that a step is replayed, whatever was done."""

    name: ClassVar[str] = "random_reward"
    term: ClassVar[str] = "music_tf.intrinsic.random_reward:RandomReward"
    metrics: ClassVar[Mapping[str, str]] = {
        "reward/random_reward_raw": "mean number drawn; with gain auto",
        "reward/random_reward_gain": "reward for a number of 1 that the gain auto has come to",
    }


def ddpg_music_frozen(preset: Preset, env_id: str = _PUSH) -> Config:
    """`ddpg_music` with a statistics network that never learns: what its random start is worth.

    A control of ours: a random network already pays for some joint motion. Only what `ddpg_music`
    does better than this has been learned. Compare at a gain that fits it: it sees less in a step
    than the learned one. `--music.gain auto` pays both alike.
    """
    return with_fields(ddpg_music(preset, env_id), {"music.train": False})


def ddpg_joint_motion(preset: Preset, env_id: str = _PUSH) -> Config:
    """`ddpg_music` with a reward made by hand: wherever gripper and object both move in a step.

    A control of ours: it pays 1{|dx| > 1 mm and |dy| > 1 mm} (minus 1 under `paper`, as MUSIC
    does), and learns nothing about the environment. All else is as in `ddpg_music`.
    """
    by_hand = JointMotionConfig(shift=-1.0 if preset == "paper" else 0.0)
    return dataclasses.replace(ddpg_music(preset, env_id), rewards={"joint_motion": by_hand})


def ddpg_random_reward(preset: Preset, env_id: str = _PUSH) -> Config:
    """`ddpg_music` with a reward drawn at random, whatever is done: what no reward is worth.

    A control of ours: its mean pay is that of `--music.gain auto`, over all replayed steps. All
    else is as in `ddpg_music`, so that a lost object costs what it costs there.
    """
    drawn = RandomRewardConfig(gain="auto", shift=-1.0 if preset == "paper" else 0.0)
    return dataclasses.replace(ddpg_music(preset, env_id), rewards={"random_reward": drawn})
