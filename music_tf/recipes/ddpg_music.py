"""DDPG on mutual information alone: learns to control an object without any task reward.

Unsupervised MUSIC (arXiv:2103.08107). The preset `paper` is the release: training goals are zero,
the only reward is the mutual information between agent and surrounding state, nothing is
relabelled, 16 workers. The preset `laptop` is tuned for minutes on two cores; docs/music.md says
what each of its differences does. Needs an environment with an object.
"""

import dataclasses

from music_tf.config.settings import (
    Config,
    DdpgConfig,
    EvaluationConfig,
    MusicConfig,
    ReplayConfig,
)

CONFIG = Config(
    agent=DdpgConfig(),
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
    agent=DdpgConfig(
        polyak=0.995,
        polyak_every="update",
        action_l2=0.1,
        return_clip="auto",
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
