"""Five skills that can be told apart by where the object is, without any task reward.

Diversity is all you need (arXiv:1802.06070) as the MUSIC release (arXiv:2103.08107) has it: the
discriminator sees the object alone, at the state before the action, the reward is half its
log-likelihood in [-1, 0] without the prior, goals are zero but hindsight relabels four of five of
them. The preset `laptop` is nearer to the DIAYN paper: entropy in targets and actor, the state
after the action, the prior subtracted; and it has a discriminator too small to know episodes by
heart.
"""

import dataclasses
import math

from music_tf.config.settings import (
    Config,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
    SacConfig,
    SkillConfig,
)

SKILLS = 5

CONFIG = Config(
    env_id="FetchPickAndPlace-v4",
    agent=SacConfig(),
    goals="zero",
    rewards=("skill",),
    skills=SKILLS,
    replay=ReplayConfig(relabel_k=4.0),
    evaluation=EvaluationConfig(episodes=320),
)
LAPTOP = dataclasses.replace(
    CONFIG,
    workers=4,
    rollouts=2,
    epochs=60,
    cycles=20,
    lost_object="absorb",
    agent=SacConfig(
        polyak=0.995,
        polyak_every="update",
        action_l2=0.0,
        entropy_mode="next_state",
        actor_entropy=True,
        learn_temperature=True,
        next_action="main",
    ),
    skill=SkillConfig(
        scale=1.0,
        clip=(0.0, math.inf),
        state="next",
        subtract_prior=True,
        normalize_inputs=True,
        hidden_sizes=(32, 32),
    ),
    replay=ReplayConfig(batch_size=64),
    exploration=ExplorationConfig(sample=True, noise=0.0),
    evaluation=EvaluationConfig(episodes=40),
)
PER_ENVIRONMENT = {"FetchSlide-v4": {"agent.entropy_scale": 0.03}}
