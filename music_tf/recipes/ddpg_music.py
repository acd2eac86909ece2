"""DDPG on mutual information alone: learns to control an object without any task reward.

Unsupervised MUSIC (arXiv:2103.08107) as released: training goals are zero, the only reward is
the mutual information between agent and surrounding state, and nothing is relabelled. Needs an
environment with an object. The preset `paper` has the released sizes.
"""

import dataclasses

from music_tf.config.schema import Config, DdpgConfig, EvaluationConfig, MusicConfig

CONFIG = Config(
    agent=DdpgConfig(),
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
