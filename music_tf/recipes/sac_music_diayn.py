"""MUSIC first, then the reward of `sac_diayn`: control of the object, then skills in using it.

As released (arXiv:2103.08107): `sac_diayn` that starts from actor, critic and target networks of
a run of `sac_music_skills`; mutual information is no longer rewarded. The release leaves the
running statistics behind.

`laptop` keeps agent, exploration and horizon of the run that it starts from, but for the action
penalty, and brings its statistics of observations and its statistics network along. Mutual
information goes on being learned and counts at 0.3 of its weight: without it the object is let go
before the discriminator has found anything to tell skills by.
"""

import dataclasses

from music_tf.config.start import Source
from music_tf.recipes import sac_diayn, sac_music_skills

CONFIG = sac_diayn.CONFIG
_BEFORE = sac_music_skills.LAPTOP
LAPTOP = dataclasses.replace(
    _BEFORE,
    rewards=("music", "skill"),
    music=dataclasses.replace(_BEFORE.music, weight=((0.0, 0.3),)),
    skill=sac_diayn.LAPTOP.skill,
    agent=dataclasses.replace(_BEFORE.agent, action_l2=0.0),
)
PER_ENVIRONMENT = sac_diayn.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = sac_music_skills.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("sac_music_skills", ("actor", "critic", "targets"))
LAPTOP_SOURCE = Source("sac_music_skills", (*SOURCE.parts, "normalizer", "statistics"))
