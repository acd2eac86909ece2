"""What a run prints before it builds anything, and of its epochs and minutes at its end."""

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from music_tf.config.settings import Config
from music_tf.process.launcher import is_elastic
from music_tf.process.machine import available_cores, threads_per_rank
from music_tf.reading.command import TrainCommand
from music_tf.storage.warm_start import start_line
from music_tf.training.actors import Ranks
from music_tf.training.counters import Counters

_ONE = r"(?<![\d.])1 (\w+)s\b"
_LEARNER_CORES = 2
"""Cores that a learner keeps busy beside its actors."""


def first_lines(command: TrainCommand, ranks: Ranks, origin: Mapping[str, Any] | None) -> list[str]:
    config = command.config
    count, steps = config.workers * config.rollouts * config.rounds(), config.collect.steps
    played = f"{count} episodes" if steps is None else f"{steps} steps in {count} environments"
    ratio = config.collect.updates_per_step
    learned = config.updates * (config.tasks.visits or 1)
    updates = f"{learned} updates" if ratio is None else f"{ratio:g} updates per step"
    by_default = command.start is not None and command.start.by_default
    otherwise = "; from random weights: --init-from none" if by_default else ""
    batch, several = config.workers * config.replay.batch_size, config.workers > 1
    return [
        f"music_tf: {command.recipe} ({command.preset}) on {config.env_id}, seed {config.seed}",
        f"{describe_ranks(ranks, config)}; {config.workers} worker{'s' * several}, batch {batch}",
        re.sub(_ONE, r"1 \1", f"an epoch is {config.cycles} cycles of {played} and {updates}"),
        *([start_line(origin) + otherwise] if origin is not None else []),
    ]


def describe_ranks(ranks: Ranks, config: Config) -> str:
    actors = ranks.actors
    here = 0 if actors is None else actors.here
    threads = threads_per_rank(config.threads, ranks.learning.size, here)
    cores = f"{available_cores()} cores"
    some = "1 thread" if threads == 1 else f"{threads} threads"
    learner = f"on {ranks.gpu}" if ranks.gpu else f"of {some}"
    if actors is not None:
        others = f" and {actors.hosts - 1} more host(s)" if actors.hosts > 1 else ""
        missing = here + _LEARNER_CORES - available_cores()
        crowded = f"; {missing} too few for all to work at once" if missing > 0 else ""
        return (
            f"{actors.count} actor(s) beside {ranks.learning.size} learner(s) {learner}, "
            f"lag {config.lag}, on {cores}{others}{crowded}; a lost actor "
            + ("is survived" if is_elastic() and config.collect.steps is None else "ends the run")
        )
    if ranks.size > 1:
        return f"{ranks.size} processes on {cores}, {some} each"
    return f"1 process {learner}" if ranks.gpu else f"1 process, {some}"


def last_line(config: Config, counters: Counters) -> str:
    """Says how far a run has come, and whether other programs make it slow."""
    load, cores = os.getloadavg()[1], available_cores()
    slow = f"; other programs slow this machine down (load {load:.0f} on {cores} cores)"
    used = f"{counters.epoch} of {config.epochs} epochs in {counters.elapsed_s / 60.0:.1f} minutes"
    return used + slow * (load > 2 * cores)


def longer(config: Config, counters: Counters) -> tuple[str, int]:
    """Returns the setting that continues a run: minutes for its epochs, else as many again."""
    if counters.epoch >= config.epochs:
        return "epochs", 2 * config.epochs
    minutes = counters.elapsed_s / 60.0 * config.epochs / max(1, counters.epoch)
    return "max_minutes", 1 + math.ceil(minutes)
