"""DDPG on the task reward, from the policy of a run of MUSIC: "MUSIC-f".

Fine-tuning of arXiv:2103.08107 (its release): actor, critic and targets of `ddpg_music` go on
learning under the task's goals and reward, without hindsight. The release leaves the running
statistics behind; `laptop` brings those of observations along. On FetchSlide the release starts
from a run of 13 epochs.
"""

from music_tf.config.start import Source
from music_tf.recipes import ddpg

CONFIG = ddpg.CONFIG
LAPTOP = ddpg.LAPTOP
SOURCE = Source("ddpg_music", ("actor", "critic", "targets"), epochs={"FetchSlide-v4": 13})
LAPTOP_SOURCE = Source("ddpg_music", (*SOURCE.parts, "normalizer"))
