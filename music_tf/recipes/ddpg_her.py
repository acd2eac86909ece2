"""DDPG with hindsight relabelling: learns goal-reaching tasks from sparse rewards.

Hindsight experience replay (arXiv:1707.01495) as in its release: four of five goals are
relabelled with the future of their episode (k = 4), and TD targets are clipped to what the task
can pay, (-1/(1 - gamma), 0). The preset `paper` has the sizes of the MUSIC release; `laptop` has
small batches, a shorter horizon (gamma 0.95), targets that move with every update, and a smaller
action penalty.
"""

import dataclasses

from music_tf.config.settings import (
    Config,
    DdpgConfig,
    EvaluationConfig,
    ReplayConfig,
)

CONFIG = Config(
    agent=DdpgConfig(return_clip="auto"),
    replay=ReplayConfig(strategy="future", relabel_k=4.0),
    evaluation=EvaluationConfig(episodes=320),
)
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=150,
    cycles=20,
    updates=80,
    agent=DdpgConfig(
        discount=0.95, polyak=0.98, polyak_every="update", action_l2=0.1, return_clip="auto"
    ),
    replay=ReplayConfig(strategy="future", relabel_k=4.0, batch_size=64),
    evaluation=EvaluationConfig(episodes=40),
)
PER_ENVIRONMENT = {"FetchReach-v4": {"cycles": 10}}
LAPTOP_PER_ENVIRONMENT = {"FetchReach-v4": {"epochs": 10}}
