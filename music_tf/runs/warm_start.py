"""Tries what a run takes over from another one before anything of the run is written."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.storage.start import Heritage, inherit
from music_tf.training.build import build_trainer


def try_heritage(config: Config, source: Path, parts: Sequence[str]) -> Heritage:
    """Returns what a run of this configuration takes over, tried on a few environments.

    Raises:
        UsageError: Nothing is there, or it does not fit, or its numbers are not finite; the text
            names the part.
        EnvironmentFault: Whatever is there is damaged, or the environment cannot be created.
    """
    replay = dataclasses.replace(config.replay, capacity=1)
    small = dataclasses.replace(config, workers=1, rollouts=1, replay=replay)
    trainer = build_trainer(small, Communicator(alone=True))
    try:
        own = {n: array for n, array in trainer.shared().items() if not n.startswith("adam_")}
        heritage = inherit(own, source, parts, trainer.meta()["inputs"], config.rewards.values())
        try:
            trainer.start_from(heritage.arrays)
        except ValueError as error:
            raise UsageError(f"--init-from: {source}: {error}") from error
    finally:
        trainer.envs.close()
    return heritage
