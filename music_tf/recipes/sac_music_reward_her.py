"""Soft actor-critic with hindsight, with mutual information as an added reward.

`sac_her` in all other settings, so that the two differ by what MUSIC gives. The release has no
such recipe: it does without hindsight.
"""

from music_tf.recipes import ddpg_music, ddpg_music_reward, sac_her, sac_music_reward

CONFIG = ddpg_music_reward.rewarded(sac_her.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_reward.rewarded(sac_her.LAPTOP, ddpg_music.LAPTOP.music)
PER_ENVIRONMENT = ddpg_music_reward.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = ddpg_music_reward.LAPTOP_PER_ENVIRONMENT
SOURCE = sac_music_reward.SOURCE
