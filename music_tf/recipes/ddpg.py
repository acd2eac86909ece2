"""DDPG on the task reward, without hindsight: the released baseline of MUSIC.

The preset `paper` is the release (arXiv:2103.08107): 16 workers, 50 cycles of 2 episodes and 40
updates per epoch, no relabelling, no return clip. `laptop` is for two cores.
"""

import dataclasses

from music_tf.config.settings import Config, DdpgConfig, EvaluationConfig, ReplayConfig

CONFIG = Config(agent=DdpgConfig(), evaluation=EvaluationConfig(episodes=320))
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=150,
    cycles=20,
    agent=DdpgConfig(polyak=0.995, polyak_every="update"),
    replay=ReplayConfig(batch_size=64),
    evaluation=EvaluationConfig(episodes=40),
)
PER_ENVIRONMENT = {"FetchReach-v4": {"cycles": 10}}
LAPTOP_PER_ENVIRONMENT = {"FetchReach-v4": {"epochs": 10}}
