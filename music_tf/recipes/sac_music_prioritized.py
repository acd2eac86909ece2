"""The released "SAC" on the task reward, replaying episodes by their mutual information: "MUSIC-p".

As `ddpg_music_prioritized`, with the statistics network of a run of `sac_music`.
"""

from music_tf.config.start import Source
from music_tf.recipes import ddpg_music, ddpg_music_prioritized, sac

CONFIG = ddpg_music_prioritized.prioritized(sac.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_prioritized.prioritized(sac.LAPTOP, ddpg_music.LAPTOP.music)
PER_ENVIRONMENT = sac.PER_ENVIRONMENT
LAPTOP_PER_ENVIRONMENT = ddpg_music_prioritized.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("sac_music", ("statistics",))
