"""The released "SAC" on the task reward, from the policy of a run of MUSIC: "MUSIC-f".

As `ddpg_music_finetune`, from a run of `sac_music`, and with the larger weight of the entropy
offset that the release gives to fine-tuning.
"""

from music_tf.config.fields import with_fields
from music_tf.recipes import ddpg_music_finetune, sac

_ENTROPY = {"agent.entropy_weight": ((0.0, 0.5),)}

CONFIG = with_fields(sac.CONFIG, _ENTROPY)
LAPTOP = with_fields(sac.LAPTOP, _ENTROPY)
PER_ENVIRONMENT = sac.PER_ENVIRONMENT
SOURCE = ddpg_music_finetune.SOURCE._replace(recipe="sac_music")
LAPTOP_SOURCE = ddpg_music_finetune.LAPTOP_SOURCE._replace(recipe="sac_music")
