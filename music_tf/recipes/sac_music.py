"""Stochastic actor on mutual information alone: learns control without any task reward.

Unsupervised MUSIC (arXiv:2103.08107) with the released "SAC", a Gaussian policy with a small
entropy offset that is averaged over the batch. Training goals are zero and nothing is
relabelled. Needs an environment with an object. The preset `paper` has the released sizes and,
on FetchSlide, the larger entropy scale. The preset `laptop` has the settings of `ddpg_music`, and
no entropy offset: beside rewards that are never negative it would make losing the object pay.
"""

import dataclasses

from music_tf.config.settings import SacConfig
from music_tf.recipes import ddpg_music

CONFIG = dataclasses.replace(ddpg_music.CONFIG, agent=SacConfig())
LAPTOP = dataclasses.replace(
    ddpg_music.LAPTOP,
    agent=SacConfig(
        polyak=0.995,
        polyak_every="update",
        action_l2=0.1,
        return_clip="auto",
        entropy_mode="off",
    ),
)
LAPTOP_PER_ENVIRONMENT = ddpg_music.LAPTOP_PER_ENVIRONMENT
PER_ENVIRONMENT = {
    "FetchSlide-v4": {"agent.entropy_scale": 0.03},
}
