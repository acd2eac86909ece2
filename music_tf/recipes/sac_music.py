"""Stochastic actor on mutual information alone: learns control without any task reward.

Unsupervised MUSIC (arXiv:2103.08107) with the released "SAC", a Gaussian policy with a small
entropy offset that is averaged over the batch. Training goals are zero and nothing is
relabelled. Needs an environment with an object. The preset `paper` has the released sizes and,
on FetchSlide, the larger entropy scale. The preset `laptop` has the settings of `ddpg_music`, and
no entropy offset: beside rewards that are never negative it would make losing the object pay.
"""

import dataclasses

from music_tf.config.schema import (
    Config,
    EvaluationConfig,
    MusicConfig,
    ReplayConfig,
    SacConfig,
)

CONFIG = Config(
    agent=SacConfig(),
    goals="zero",
    rewards=("music",),
    evaluation=EvaluationConfig(episodes=320),
)
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=28,
    cycles=20,
    lost_object="absorb",
    agent=SacConfig(
        polyak=0.995,
        polyak_every="update",
        action_l2=0.1,
        return_clip="auto",
        entropy_mode="off",
    ),
    music=MusicConfig(pair_negatives="swap", shift=0.0, trajectories=32),
    replay=ReplayConfig(batch_size=64),
    evaluation=EvaluationConfig(episodes=40),
)
LAPTOP_PER_ENVIRONMENT = {
    "FetchPush-v4": {"music.gain": 1000.0},
    "FetchPickAndPlace-v4": {
        "agent.discount": 0.95,
        "agent.return_clip": "off",
        "epochs": 60,
    },
    "FetchSlide-v4": {"music.gain": 1000.0},
}
PER_ENVIRONMENT = {
    "FetchSlide-v4": {"agent.entropy_scale": 0.03},
}
