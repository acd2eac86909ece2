"""Evaluations between those of epochs, in environments of their own."""

import math
import time
from pathlib import Path

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.storage.logs import RateLimitedWarning
from music_tf.storage.metrics import EvaluationsWriter
from music_tf.training.checks import streams_kept
from music_tf.training.trainer import Trainer

EPISODES = 10
"""Episodes of each evaluation, over all ranks."""


class CycleEvaluations:
    """Measures the policy every `evaluation.every_cycles`, and changes no number of training."""

    def __init__(self, trainer: Trainer, path: Path, warn: RateLimitedWarning) -> None:
        self._trainer, self._path, self._warn = trainer, path, warn
        self._writer: EvaluationsWriter | None = None
        self.envs: LockstepEnvs | None = None
        config, count = trainer.config, math.ceil(EPISODES / trainer.comm.size)
        if config.evaluation.every_cycles:
            with streams_kept():
                self.envs = LockstepEnvs(config.env_id, count, config.env, world=config.world)

    def resume(self) -> None:
        """Drops the rows of cycles after the present one."""
        if self.envs is not None and self._trainer.comm.is_root:
            cycle = self._trainer.counters.cycle
            self._writer = EvaluationsWriter(self._path, cycle, self._warn)

    def end_cycle(self) -> None:
        """Evaluates if it is due; a collective call."""
        trainer, start = self._trainer, time.monotonic()
        config, counters = trainer.config, trainer.counters
        if self.envs is None or counters.cycle % (config.evaluation.every_cycles or 1):
            return
        # fresh episodes, in neither the environments nor the actors of training
        evaluation = trainer.as_trained._replace(envs=self.envs, actors=None, turn=counters.cycle)
        with streams_kept():
            played = evaluation.play(trainer.policy(), EPISODES)
        row = {"cycle": counters.cycle, "eval/return": float(played.reward.sum(axis=1).mean())}
        row |= {"time/env_steps": counters.env_steps, "time/elapsed_s": counters.elapsed_s}
        if trainer.envs.spec.goal_dim and config.goals == "environment":
            row["eval/success_rate"] = float(played.success.mean())
        counters.elapsed_s += time.monotonic() - start
        if trainer.comm.is_root:
            self._writer = self._writer or EvaluationsWriter(self._path, None, self._warn)
            self._writer.write(row)
