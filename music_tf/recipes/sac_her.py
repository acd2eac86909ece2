"""Soft actor-critic with hindsight relabelling: twin critics, learned temperature.

Soft actor-critic (arXiv:1801.01290, with the learned temperature of arXiv:1812.05905) on
hindsight relabelling (arXiv:1707.01495, k = 4). Exploration samples the policy, so no noise is
added, and the action penalty of DDPG is off: entropy takes its place. Nor are TD targets
clipped: the entropy in a soft return is unbounded below and may be positive, so that the
bounds (-1/(1 - gamma), 0) of `ddpg_her` do not hold.
"""

import dataclasses

from music_tf.config.settings import (
    Config,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
    SacConfig,
)

CONFIG = Config(
    agent=SacConfig(
        critics=2,
        action_l2=0.0,
        entropy_mode="next_state",
        actor_entropy=True,
        learn_temperature=True,
        next_action="main",
    ),
    replay=ReplayConfig(strategy="future", relabel_k=4.0),
    exploration=ExplorationConfig(sample=True, noise=0.0, random_probability=0.0),
    evaluation=EvaluationConfig(episodes=320),
)
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=150,
    cycles=20,
    agent=dataclasses.replace(CONFIG.agent, polyak=0.995, polyak_every="update"),
    replay=ReplayConfig(strategy="future", relabel_k=4.0, batch_size=64),
    evaluation=EvaluationConfig(episodes=40),
)
PER_ENVIRONMENT = {"FetchReach-v4": {"cycles": 10}}
LAPTOP_PER_ENVIRONMENT = {"FetchReach-v4": {"epochs": 10}}
