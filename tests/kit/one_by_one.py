"""Skills one after the other on a point in a square, within a second or two."""

from music_tf.config.fields import with_fields
from music_tf.distributed import Communicator
from music_tf.recipes import resolve
from music_tf.training.build import build_trainer

TINY = with_fields(
    resolve("sac_disk"),
    {
        **{"skills": 3, "epochs": 6, "incremental.epochs": (2,), "incremental.collected": 2},
        **{"cycles": 2, "updates": 5, "collect.steps": 20, "collect.random_steps": 0},
        **{"agent.hidden_sizes": (16, 16), "replay.batch_size": 16, "replay.capacity": 300},
        **{"disk.rows": 32, "disk.own_episodes": 3, "evaluation.episodes": 2},
    },
)
"""Three skills of two epochs, each of 40 steps and 20 updates."""


def trainer_of(**changes):
    return build_trainer(with_fields(TINY, changes), Communicator(alone=True))
