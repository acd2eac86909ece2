"""Reward terms without an environment."""

from music_tf.config.settings import WorldConfig
from music_tf.envs.registry import EnvironmentInfo
from music_tf.intrinsic.base import TermContext
from music_tf.types import EnvSpec


def context(split=None, columns=(), skills=1, scale=None, seed=0, **info):
    """What a term is built with; `scale` is what measuring its inputs would give."""
    return TermContext(
        spec=EnvSpec(
            env_id="made-up",
            observation_dim=25,
            goal_dim=3,
            action_dim=4,
            max_episode_steps=50,
            split=split,
        ),
        info=EnvironmentInfo(family="made-up", **info),
        world=WorldConfig(descriptor=tuple(columns)),
        seed=seed,
        skills=skills,
        measure=lambda measured: scale,
    )
