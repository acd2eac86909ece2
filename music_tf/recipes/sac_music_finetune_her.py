"""Soft actor-critic with hindsight relabelling, from the policy of a run of MUSIC.

`sac_her` in all settings, so that the two differ by where they start. It has two critics of soft
values and `sac_music` one of another kind, so that only the actor is taken over.
"""

from music_tf.config.start import Source
from music_tf.recipes import sac_her

CONFIG = sac_her.CONFIG
LAPTOP = sac_her.LAPTOP
SOURCE = Source("sac_music", ("actor",))
LAPTOP_SOURCE = Source("sac_music", ("actor", "normalizer"))
