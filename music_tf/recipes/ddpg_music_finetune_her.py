"""DDPG with hindsight relabelling, from the policy of a run of MUSIC.

`ddpg_her` in all settings, so that the two differ by where they start. The release has no such
recipe: its fine-tuning does without hindsight.
"""

from music_tf.config.start import Source
from music_tf.recipes import ddpg_her, ddpg_music_finetune

CONFIG = ddpg_her.CONFIG
LAPTOP = ddpg_her.LAPTOP
SOURCE = Source("ddpg_music", ddpg_music_finetune.SOURCE.parts)
LAPTOP_SOURCE = ddpg_music_finetune.LAPTOP_SOURCE
