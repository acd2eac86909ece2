"""Measures skills in each stage of a changing world: what they keep and what they forget."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from music_tf.config.settings import Config
from music_tf.measures.skills import separation
from music_tf.networks.acting import SnapshotPolicy
from music_tf.rollout import Policy
from music_tf.storage.worlds import ENDS, WorldsTable
from music_tf.training.evaluation import Evaluation
from music_tf.training.incremental import SkillSequence
from music_tf.training.trainer import Trainer
from music_tf.types import Array, Episodes, Metrics


class Acting(NamedTuple):
    """A policy to measure: one skill, or all conditions in turn."""

    skill: int | None
    """Number of the skill; None for one policy whose conditions take turns."""
    learned_in: int
    """Last stage of the world in which it was learned."""
    policy: Policy


class Worlds:
    """Measures skills in each stage of a changing world, at every change and at the end."""

    def __init__(
        self, trainer: Trainer, path: Path, warn: Callable[[str, OSError, Path], None]
    ) -> None:
        self._trainer = trainer
        self._table = WorldsTable(path, warn)
        self._stage = trainer.world

    def resume(self) -> None:
        """Continues at the present epoch; measures a stage that was added for the next skill."""
        trainer, sequence = self._trainer, self._trainer.part(SkillSequence)
        self._stage, measured = trainer.world, False
        if not trainer.config.env.stages:
            return
        if trainer.comm.is_root:
            measured = self._table.resume(trainer.counters.epoch)
        if sequence is None or not sequence.begins_skill(trainer.counters.epoch):
            return
        before = sequence.progress.worlds[-1] if sequence.learned else self._stage
        if before != self._stage and not trainer.comm.broadcast_object(measured):
            self._stage = before
            self._judge()

    def end_epoch(self) -> None:
        last = self._trainer.counters.epoch >= self._trainer.config.epochs  # `end_run` measures
        if self._trainer.world != self._stage and not last:
            self._judge()

    def end_run(self) -> None:
        if self._trainer.config.env.stages:
            self._judge()

    def _judge(self) -> None:
        trainer, start, counters = self._trainer, time.monotonic(), self._trainer.counters
        sequence = trainer.part(SkillSequence)
        if sequence is None:
            acting = acting_now(trainer.config, trainer.policy(), self._stage)
        else:
            learned = zip(sequence.progress.worlds, sequence.learned, strict=True)
            acting = [
                Acting(skill, stage, SnapshotPolicy(snapshot))
                for skill, (stage, snapshot) in enumerate(learned)
            ]
            if sequence.skill == len(acting):  # which is still learned
                acting.append(Acting(len(acting), self._stage, trainer.policy()))
        rows = measure_worlds(trainer.evaluation, acting, range(trainer.world + 1))
        now: dict[str, float] = {"epoch": counters.epoch, "env_steps": counters.env_steps}
        now |= {"stage": self._stage, "next_stage": trainer.world}
        self._stage = trainer.world
        counters.elapsed_s += time.monotonic() - start
        if trainer.comm.is_root:
            self._table.add([now | row for row in rows])


def acting_now(config: Config, policy: Policy, stage: int) -> list[Acting]:
    """Returns each skill of a policy that learns all at once, or one entry without skills."""
    skills: Sequence[int | None] = config.acting_skills
    if len(skills) < 2 and config.pinned_skill is None:  # noqa: PLR2004
        skills = (None,)
    return [Acting(skill, stage, policy) for skill in skills]


def measure_worlds(
    evaluation: Evaluation, acting: Sequence[Acting], worlds: Iterable[int]
) -> list[Metrics]:  # with columns from `world` to `hausdorff` of `storage.worlds.COLUMNS`
    """Plays each skill in these stages of the world, on the same episodes; a collective call."""
    rows, episodes = [], evaluation.config.evaluation.world_episodes
    for world in worlds:
        in_world = evaluation._replace(world=world)
        of_world, tracks = [], []
        for skill in acting:
            played = in_world.play(skill.policy, episodes, skill.skill)
            row: Metrics = {} if skill.skill is None else {"skill": skill.skill}
            row |= {"world": world, "learned_in": skill.learned_in, "episodes": episodes}
            tracks.append(track := evaluation.track(played))
            of_world.append(row | _summary(evaluation, played, track.seen[:, -1]))
        between = separation(tracks)
        for row, spread, nearest in zip(of_world, between.spreads, between.nearest, strict=True):
            row["spread"] = float(spread)
            if len(of_world) > 1:
                row["hausdorff"] = float(nearest)
        rows += of_world
    return rows


def _summary(evaluation: Evaluation, played: Episodes, ends: Array) -> Metrics:
    """Returns means over E episodes of one skill, which end at `ends` [E, D]."""
    behaviour = evaluation.behaviour(played)
    row: Metrics = {
        "return": float(played.reward.sum(axis=1).mean()),
        "length": float(played.length.mean()),
    }
    if "eval/success_rate" in behaviour:
        row["success_rate"] = behaviour["eval/success_rate"]
    if ends.shape[1] <= len(ENDS):
        row |= dict(zip(ENDS, ends.mean(axis=0, dtype=np.float64).tolist(), strict=False))
    return row
