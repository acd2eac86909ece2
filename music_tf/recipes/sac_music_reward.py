"""The released "SAC" on the task reward, with mutual information as an added reward: "MUSIC-r".

As `ddpg_music_reward`, with the statistics network of a run of `sac_music`.
"""

from music_tf.config.start import Source
from music_tf.recipes import ddpg_music, ddpg_music_reward, sac

CONFIG = ddpg_music_reward.rewarded(sac.CONFIG, ddpg_music.CONFIG.music)
LAPTOP = ddpg_music_reward.rewarded(sac.LAPTOP, ddpg_music.LAPTOP.music)
PER_ENVIRONMENT = {
    "FetchSlide-v4": {"agent.entropy_scale": 0.03, "music.weight": ((0.0, 0.5),)},
}
LAPTOP_PER_ENVIRONMENT = ddpg_music_reward.LAPTOP_PER_ENVIRONMENT
SOURCE = Source("sac_music", ("statistics",))
