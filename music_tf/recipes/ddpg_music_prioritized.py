"""DDPG on the task reward, replaying episodes by their mutual information: "MUSIC-p".

Prioritised replay of arXiv:2103.08107 (its release): the statistics network of a run of
`ddpg_music`, frozen, measures each new episode, and actor and critic learn from episodes drawn
by the dense rank of that. It pays no reward: its weight is 0. No hindsight.
"""

import dataclasses

from music_tf.config.settings import Config, MusicConfig
from music_tf.config.start import Source
from music_tf.recipes import ddpg, ddpg_music, ddpg_music_reward


def prioritized(config: Config, music: MusicConfig) -> Config:
    """Draws episodes by what a statistics network that learns no more sees in them."""
    return dataclasses.replace(
        config,
        rewards=("task", "music"),
        music=dataclasses.replace(music, train=False, weight=((0.0, 0.0),)),
        replay=dataclasses.replace(config.replay, priority="music"),
    )


CONFIG = prioritized(ddpg.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = prioritized(ddpg.LAPTOP, ddpg_music.LAPTOP.music)
LAPTOP_PER_ENVIRONMENT = ddpg_music_reward.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("ddpg_music", ("statistics",))
