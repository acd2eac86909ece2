"""DDPG with hindsight, replaying episodes by their mutual information.

`ddpg_her` in all other settings, so that the two differ by what MUSIC gives. The release has no
such recipe: it does without hindsight.
"""

from music_tf.recipes import ddpg_her, ddpg_music, ddpg_music_prioritized

CONFIG = ddpg_music_prioritized.prioritized(ddpg_her.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_prioritized.prioritized(ddpg_her.LAPTOP, ddpg_music.LAPTOP.music)
LAPTOP_PER_ENVIRONMENT = ddpg_music_prioritized.LAPTOP_PER_ENVIRONMENT
SOURCE = ddpg_music_prioritized.SOURCE
