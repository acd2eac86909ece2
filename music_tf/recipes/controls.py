"""Baselines and an ablation of MUSIC."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, ClassVar

from music_tf.config.fields import In, with_fields
from music_tf.config.names import FETCH_PUSH
from music_tf.config.settings import Config
from music_tf.config.terms import ScaledConfig
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music


@dataclasses.dataclass(frozen=True, kw_only=True)
class JointMotionConfig(ScaledConfig):
    """1 for a step in which robot and surroundings both move, else 0; nothing is learned."""

    name: ClassVar[str] = "joint_motion"
    term: ClassVar[str] = "music_tf.intrinsic.joint_motion:JointMotion"
    needs_split: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, str]] = {
        "reward/joint_motion_raw": "share of replayed steps with joint motion; with gain auto",
        "reward/joint_motion_gain": "reward for joint motion; with gain auto",
    }
    measured: ClassVar[tuple[str, str]] = ("reward/joint_motion_raw", "reward/joint_motion_gain")

    threshold: Annotated[float, In(0, 1e6)] = 0.001
    """How far both must move, in the unit of the observation (metres for Fetch)."""
    shift: Annotated[float, In(-1e9, 1e9)] = -1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RandomRewardConfig(ScaledConfig):
    """A random number in [0, 1], drawn anew each time that a step is replayed."""

    name: ClassVar[str] = "random_reward"
    term: ClassVar[str] = "music_tf.intrinsic.random_reward:RandomReward"
    metrics: ClassVar[Mapping[str, str]] = {
        "reward/random_reward_raw": "mean number drawn; with gain auto",
        "reward/random_reward_gain": "reward for a number of 1; with gain auto",
    }
    measured: ClassVar[tuple[str, str]] = ("reward/random_reward_raw", "reward/random_reward_gain")


def ddpg_music_frozen(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Ablation of MUSIC: its network never learns.

    A random network already rewards some joint motion. Its bounds are smaller: under `laptop` the
    gain `auto` compensates for that; under `paper` set a larger gain.
    """
    return with_fields(ddpg_music(preset, env_id), {"music.train": False})


def ddpg_joint_motion(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Baseline of MUSIC: a hand-made reward for motion."""
    return _paid_as_music(JointMotionConfig(), preset, env_id)


def ddpg_random_reward(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Baseline of MUSIC: a random reward.

    Under `laptop` its mean pay is 1 a step, about that of `ddpg_music` after 80 thousand steps on
    the seeds used for tuning.
    """
    config = _paid_as_music(RandomRewardConfig(gain="auto"), preset, env_id)
    if preset == "paper":
        return config
    return with_fields(config, {"random_reward.pay": "clip", "random_reward.mean": 1.0})


def _paid_as_music(reward: ScaledConfig, preset: Preset, env_id: str) -> Config:
    """Replaces the mutual information by another reward with the same gain and pay."""
    config = ddpg_music(preset, env_id)
    same = ("shift",) if preset == "paper" else ("shift", "gain", "mean", "pay", "clip")
    music = config.rewards["music"]
    paid = dataclasses.replace(reward, **{name: getattr(music, name) for name in same})
    return dataclasses.replace(config, rewards={reward.name: paid})
