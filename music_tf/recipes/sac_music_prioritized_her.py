"""Soft actor-critic with hindsight, replaying episodes by their mutual information.

`sac_her` in all other settings, so that the two differ by what MUSIC gives. The release has no
such recipe: it does without hindsight.
"""

from music_tf.recipes import ddpg_music, ddpg_music_prioritized, sac_her, sac_music_prioritized

CONFIG = ddpg_music_prioritized.prioritized(sac_her.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_prioritized.prioritized(sac_her.LAPTOP, ddpg_music.LAPTOP.music)
LAPTOP_PER_ENVIRONMENT = ddpg_music_prioritized.LAPTOP_PER_ENVIRONMENT
SOURCE = sac_music_prioritized.SOURCE
