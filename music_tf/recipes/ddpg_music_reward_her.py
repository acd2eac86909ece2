"""DDPG with hindsight, with mutual information as an added reward.

`ddpg_her` in all other settings, so that the two differ by what MUSIC gives. The release has no
such recipe: it does without hindsight.
"""

from music_tf.recipes import ddpg_her, ddpg_music, ddpg_music_reward

CONFIG = ddpg_music_reward.rewarded(ddpg_her.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_reward.rewarded(ddpg_her.LAPTOP, ddpg_music.LAPTOP.music)
PER_ENVIRONMENT = ddpg_music_reward.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = ddpg_music_reward.LAPTOP_PER_ENVIRONMENT
SOURCE = ddpg_music_reward.SOURCE
