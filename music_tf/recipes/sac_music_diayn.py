"""MUSIC first, then the reward of `sac_diayn`: control of the object, then skills in using it.

As released (arXiv:2103.08107): `sac_diayn` that starts from actor, critic and target networks of
a run of `sac_music_skills`; mutual information is no longer rewarded. The release leaves the
running statistics behind; `laptop` brings those of observations along, and keeps the agent,
exploration and horizon of the run that it starts from: only the reward changes.
"""

import dataclasses

from music_tf.config.start import Source
from music_tf.recipes import sac_diayn, sac_music_skills

CONFIG = sac_diayn.CONFIG
LAPTOP = dataclasses.replace(
    sac_music_skills.LAPTOP, rewards=sac_diayn.LAPTOP.rewards, skill=sac_diayn.LAPTOP.skill
)
PER_ENVIRONMENT = sac_diayn.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = sac_music_skills.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("sac_music_skills", ("actor", "critic", "targets"))
LAPTOP_SOURCE = Source("sac_music_skills", (*SOURCE.parts, "normalizer"))
