"""What a run prints before it builds anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_tf.config.settings import Config
from music_tf.process.launcher import is_elastic
from music_tf.process.machine import available_cores, threads_per_rank
from music_tf.reading.command import TrainCommand
from music_tf.storage.warm_start import start_line
from music_tf.training.actors import Ranks

_LEARNER_CORES = 2
"""Cores that a learner keeps busy beside its actors."""


def first_lines(
    command: TrainCommand, ranks: Ranks, path: Path, origin: Mapping[str, Any] | None
) -> list[str]:
    config = command.config
    count, steps = config.workers * config.rollouts * config.rounds(), config.collect.steps
    played = f"{count} episodes" if steps is None else f"{steps} steps in {count} environments"
    ratio = config.collect.updates_per_step
    learned = config.updates * (config.tasks.visits or 1)
    updates = f"{learned} updates" if ratio is None else f"{ratio:g} updates per step"
    by_default = command.start is not None and command.start.by_default
    otherwise = " (or --init-from none)" if by_default else ""
    return [
        f"music_tf: {command.recipe} ({command.preset}) on {config.env_id}, seed {config.seed}",
        f"workers {config.workers} on {describe_ranks(ranks, config)}; "
        f"global batch {config.workers * config.replay.batch_size}",
        f"an epoch is {config.cycles} cycles of {played} and {updates}",
        *([start_line(origin) + otherwise] if origin is not None else []),
        f"run directory: {path}",
    ]


def describe_ranks(ranks: Ranks, config: Config) -> str:
    actors = ranks.actors
    here = 0 if actors is None else actors.here
    threads = threads_per_rank(config.threads, ranks.learning.size, here)
    cores = f"{available_cores()} cores"
    learner = f"on {ranks.gpu}" if ranks.gpu else f"of {threads} thread(s)"
    if actors is not None:
        others = f" and {actors.hosts - 1} more host(s)" if actors.hosts > 1 else ""
        missing = here + _LEARNER_CORES - available_cores()
        crowded = f"; {missing} too few for all to work at once" if missing > 0 else ""
        return (
            f"{actors.count} actor(s) beside {ranks.learning.size} learner(s) {learner}, "
            f"lag {config.lag}, on {cores}{others}{crowded}; a lost actor "
            + ("is survived" if is_elastic() and config.collect.steps is None else "ends the run")
        )
    size = f"{ranks.size} rank{'s' if ranks.size > 1 else ''}"
    return f"{size} of {cores}, " + (learner if ranks.gpu else f"{threads} thread(s) each")
