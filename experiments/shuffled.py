"""A control for skills: `music-tf train experiments.shuffled:sac_shuffled`.

Its discriminator learns from states beside the skills of others. So it can tell nothing apart, and
a measure that says otherwise is wrong.
"""

import dataclasses
from typing import ClassVar

from music_tf.config.fields import fields_of
from music_tf.config.settings import Config, SkillConfig
from music_tf.recipes import Preset
from music_tf.recipes.skills import sac_diayn


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShuffledConfig(SkillConfig):
    """The reward of `sac_diayn`, of a discriminator that was told wrong skills."""

    name: ClassVar[str] = "shuffled"
    term: ClassVar[str] = "experiments.shuffled_term:Shuffled"


def sac_shuffled(preset: Preset, env_id: str = "music_tf/UnitBox-v0") -> Config:
    """`sac_diayn` whose discriminator learns from skills that are dealt out anew."""
    config = sac_diayn(preset, env_id)
    settings = {
        field.name.partition(".")[2]: field.value for field in fields_of(config.rewards["skill"])
    }
    return dataclasses.replace(config, rewards={"shuffled": ShuffledConfig(**settings)})
