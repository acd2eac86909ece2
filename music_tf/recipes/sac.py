"""Stochastic actor on the task reward, without hindsight: the released "SAC" baseline of MUSIC.

As released (arXiv:2103.08107), this is DDPG with a Gaussian policy and a small entropy offset
that is averaged over the batch; `sac_her` is soft actor-critic as published. The preset `paper`
has the released sizes and, on FetchSlide, its larger entropy scale.
"""

import dataclasses

from music_tf.config.settings import Config, EvaluationConfig, ReplayConfig, SacConfig

CONFIG = Config(agent=SacConfig(), evaluation=EvaluationConfig(episodes=320))
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=150,
    cycles=20,
    agent=SacConfig(polyak=0.995, polyak_every="update"),
    replay=ReplayConfig(batch_size=64),
    evaluation=EvaluationConfig(episodes=40),
)
PER_ENVIRONMENT = {
    "FetchReach-v4": {"cycles": 10},
    "FetchSlide-v4": {"agent.entropy_scale": 0.03},
}
LAPTOP_PER_ENVIRONMENT = {"FetchReach-v4": {"epochs": 10}}
