"""A controller that chooses among the skills of an earlier run."""

import math
from typing import Literal

from music_tf.config import settings
from music_tf.config.agents import DiscreteSacConfig
from music_tf.config.epochs import whole_epoch
from music_tf.config.names import episode_steps


def skills_controller(
    preset: Literal["laptop", "paper"], env_id: str = "music_tf/AntGoals-v0"
) -> settings.Config:
    """A task, by choosing among frozen skills of a run.

    The hierarchy of DIAYN (arXiv:1802.06070), by discrete soft actor-critic (arXiv:1910.07207). A
    step of this run is a choice, k steps of the simulator. `paper` has DIAYN's k on its ant.
    """
    published = preset == "paper"
    skill_steps = 100 if published else 10
    epoch = whole_epoch(25, 500, math.ceil(episode_steps(env_id) / skill_steps))
    return settings.Config(
        env_id=env_id,
        env=settings.EnvConfig(skill_steps=skill_steps),
        workers=2,
        rollouts=1,
        epochs=50,
        cycles=epoch.cycles,
        updates=50,
        agent=DiscreteSacConfig(
            hidden_sizes=(256, 256),
            actor_learning_rate=3e-4,
            critic_learning_rate=3e-4,
            critics=2,
            polyak=0.995,
            polyak_every="update",
            discount=settings.EnvConfig.skill_discount,
            target_entropy=0.98 if published else 0.5,
        ),
        collect=settings.CollectConfig(steps=epoch.steps, random_steps=500, updates_per_step=1.0),
        replay=settings.ReplayConfig(batch_size=256 if published else 128),
        exploration=settings.ExplorationConfig(sample=True, noise=0.0, random_probability=0.0),
        evaluation=settings.EvaluationConfig(episodes=10),
    )
