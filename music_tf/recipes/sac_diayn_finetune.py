"""The task reward for an agent of `sac_diayn`, held to its first skill; no hindsight.

As the MUSIC release (arXiv:2103.08107) fine-tunes DIAYN: actor, critic and target networks come
from a run of `sac_diayn` on the same environment, one pinned skill is its input throughout, and
the entropy weighs more than in pre-training. The preset `laptop` fits runs of that preset.
"""

import dataclasses

from music_tf.config.settings import Config, EvaluationConfig, SacConfig
from music_tf.config.start import Source
from music_tf.recipes import sac_diayn

PINNED_SKILL = 0

CONFIG = Config(
    env_id=sac_diayn.CONFIG.env_id,
    agent=SacConfig(entropy_weight=((0.0, 0.5),)),
    skills=sac_diayn.SKILLS,
    pinned_skill=PINNED_SKILL,
    evaluation=EvaluationConfig(episodes=320),
)
SOURCE = Source("sac_diayn", ("actor", "critic", "targets"))
LAPTOP_SOURCE = Source("sac_diayn", (*SOURCE.parts, "normalizer"))
LAPTOP = dataclasses.replace(
    sac_diayn.LAPTOP,
    goals="environment",
    rewards=("task",),
    pinned_skill=PINNED_SKILL,
    lost_object="continue",
)
PER_ENVIRONMENT = sac_diayn.PER_ENVIRONMENT
