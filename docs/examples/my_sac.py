"""Soft actor-critic with a state value, on the task reward: a recipe."""

from dataclasses import replace

from music_tf.config.agents import SacValueConfig
from music_tf.recipes import tasks


def sac_value(preset, env_id="Pendulum-v1"):
    """Soft actor-critic with a state value, on the task reward."""
    agent = SacValueConfig(
        hidden_sizes=(300, 300),
        critics=2,
        temperature=0.1,
        deviation="clip",
        squash_correction="epsilon",
        linear_features=False,
        initializer="he_normal",
        actor_learning_rate=3e-4,
        critic_learning_rate=3e-4,
        value_learning_rate=3e-4,
        discount=0.99,
        polyak=0.995,
        polyak_every="update",
        action_l2=0.0,
    )
    return replace(tasks.sac(preset, env_id), agent=agent)
