"""DDPG on the task reward, with the mutual information of another environment added: "MUSIC-t".

As `ddpg_music_reward`, but the statistics network comes from a run on FetchPickAndPlace, as
released for FetchPush and FetchSlide (arXiv:2103.08107). Any run on positions of as many
components serves.
"""

from music_tf.config.start import Source
from music_tf.recipes import ddpg_music_reward

CONFIG = ddpg_music_reward.CONFIG
LAPTOP = ddpg_music_reward.LAPTOP
PER_ENVIRONMENT = ddpg_music_reward.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = ddpg_music_reward.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("ddpg_music", ("statistics",), env_id="FetchPickAndPlace-v4")
