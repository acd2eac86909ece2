"""Unsupervised MUSIC with five skills: a random constant input beside what `sac_music` sees.

Nothing rewards the skills for being different. The release (arXiv:2103.08107) has this recipe so
that skill discrimination can start from its weights, as `sac_music_diayn` does: an agent with
skills has larger inputs.
"""

import dataclasses

from music_tf.recipes import sac_music

ENV_ID = "FetchPickAndPlace-v4"
SKILLS = 5

CONFIG = dataclasses.replace(sac_music.CONFIG, env_id=ENV_ID, skills=SKILLS)
LAPTOP = dataclasses.replace(sac_music.LAPTOP, env_id=ENV_ID, skills=SKILLS)
PER_ENVIRONMENT = sac_music.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = sac_music.LAPTOP_PER_ENVIRONMENT
