"""A run of a second or two that adapts to places of the point robot."""

from music_tf.config.fields import with_fields
from music_tf.recipes.pearl import sac_pearl

CHANGES = {
    **{"workers": 2, "epochs": 2, "cycles": 2, "updates": 3, "env.max_episode_steps": 5},
    **{"agent.hidden_sizes": (16, 16), "agent.encoder_sizes": (8,), "agent.latent_size": 3},
    **{"agent.posterior": "diagonal", "agent.meta_batch": 4, "agent.context_rows": 6},
    **{"replay.batch_size": 8, "tasks.train": 6, "tasks.test": 3, "tasks.initial": 2},
    **{"tasks.prior": 1, "tasks.posterior": 1, "tasks.extra": 1, "tasks.adapt": 2},
    **{"evaluation.episodes": 2, "evaluation.every": 1},
}


def small(**changes):
    """Six tasks of two workers, episodes of five steps; names have `__` for the dot."""
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return with_fields(sac_pearl("laptop"), CHANGES | named)
