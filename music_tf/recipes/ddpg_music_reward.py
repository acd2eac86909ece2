"""DDPG on the task reward, with mutual information as an added reward: "MUSIC-r".

Of arXiv:2103.08107 (its release): the statistics network of a run of `ddpg_music`, frozen, pays
beside the task, at half the weight on FetchSlide. No hindsight.
"""

import dataclasses

from music_tf.config.settings import Config, MusicConfig
from music_tf.config.start import Source
from music_tf.recipes import ddpg, ddpg_music


def rewarded(config: Config, music: MusicConfig) -> Config:
    """Adds the reward of a statistics network that learns no more."""
    frozen = dataclasses.replace(music, train=False)
    return dataclasses.replace(config, rewards=("task", "music"), music=frozen)


CONFIG = rewarded(ddpg.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = rewarded(ddpg.LAPTOP, ddpg_music.LAPTOP.music)
PER_ENVIRONMENT = {"FetchSlide-v4": {"music.weight": ((0.0, 0.5),)}}
LAPTOP_PER_ENVIRONMENT = {
    env_id: ddpg_music.LAPTOP_PER_ENVIRONMENT[env_id]
    for env_id in ("FetchPush-v4", "FetchSlide-v4")
}
SOURCE = Source("ddpg_music", ("statistics",))
