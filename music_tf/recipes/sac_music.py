"""Stochastic actor on mutual information alone: learns control without any task reward.

Unsupervised MUSIC (arXiv:2103.08107) with the released "SAC", a Gaussian policy with a small
entropy offset that is averaged over the batch. Training goals are zero and nothing is
relabelled. Needs an environment with an object. The preset `paper` has the released sizes and,
on FetchSlide, the larger entropy scale.
"""

import dataclasses

from music_tf.config.schema import Config, EvaluationConfig, MusicConfig, SacConfig

CONFIG = Config(
    agent=SacConfig(),
    goals="zero",
    rewards=("music",),
    evaluation=EvaluationConfig(episodes=320),
)
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=2,
    rollouts=4,
    cycles=10,
    music=MusicConfig(trajectories=64),
    evaluation=EvaluationConfig(episodes=20),
)
PER_ENVIRONMENT = {
    "FetchSlide-v4": {"agent.entropy_scale": 0.03},
    "FetchSlideDense-v4": {"agent.entropy_scale": 0.03},
}
