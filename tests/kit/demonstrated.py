"""Episodes as demonstrations: played by random actions, and written as `evaluate --out` does."""

import contextlib

from music_tf.config.settings import EvaluationConfig
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.gate import ENVIRONMENT
from music_tf.tools.export import export_npz
from music_tf.training.evaluation import Evaluation
from tests.kit.small import HER


def play_at_random(config=HER, episodes=5):  # and what the environment declares
    config = config.__class__(**vars(config) | {"evaluation": EvaluationConfig(episodes=episodes)})
    with contextlib.closing(LockstepEnvs(config.env_id, 2, config.env)) as envs:
        return Evaluation(envs, config, Communicator(alone=True)).random(), envs.declared


def write_demonstrations(path, played, declared, env_id=HER.env_id):
    export_npz(path, played, {"env_id": env_id, ENVIRONMENT: vars(declared)}, {})
    return str(path)
