"""Fits episodes into epochs that are collected by steps, whose end cuts off open episodes."""

import math
from typing import NamedTuple

from music_tf.config.fields import with_fields
from music_tf.config.names import episode_steps
from music_tf.config.settings import Config
from music_tf.errors import UsageError


class Epoch(NamedTuple):
    """Cycles of an epoch, and steps of each environment in a cycle."""

    steps: int
    cycles: int


def whole_epoch(steps: int, wanted: int, length: int) -> Epoch:
    """Returns an epoch of whole episodes of `length` steps, with about `wanted` steps."""
    unit = math.lcm(steps, length)
    if unit > 2 * max(wanted, length):
        steps = _largest_divisor(length, steps)  # shorter cycles, not a longer epoch
        unit = length
    return Epoch(steps, unit * max(1, round(wanted / unit)) // steps)


def with_whole_episodes(config: Config) -> Config:
    """Returns the configuration with an epoch that cuts no episode of the registered length."""
    steps = config.collect.steps
    if steps is None:
        return config
    length = config.env.max_episode_steps or episode_steps(config.env_id)
    epoch = whole_epoch(steps, steps * config.cycles, length)
    return with_fields(config, {"cycles": epoch.cycles, "collect.steps": epoch.steps})


def cut_by_epochs(config: Config, length: int) -> str:
    """Says which episodes of `length` steps or choices of skills an epoch's end cuts; else ""."""
    steps = config.collect.steps
    if steps is None or not (steps * config.cycles) % length:
        return ""
    epoch = steps * config.cycles
    near = whole_epoch(steps, epoch, length)
    other_steps = "" if near.steps == steps else f" --collect.steps {near.steps}"
    limit = _largest_divisor(epoch, length) * (config.env.skill_steps if config.env.skills else 1)
    way_out = f"--cycles {near.cycles}{other_steps}, or --env.max-episode-steps {limit}"
    if epoch < length:
        raise UsageError(
            f"cycles: an epoch of {config.cycles} x {steps} steps of each environment cuts off "
            f"every episode of {length} before its end\nnearest: {way_out}"
        )
    return (
        f"an epoch has {epoch} steps of each environment, an episode up to {length}: one that is "
        f"open at the end is cut after {epoch % length}; to cut none: {way_out}"
    )


def _largest_divisor(number: int, most: int) -> int:
    return next(divisor for divisor in range(min(number, most), 0, -1) if number % divisor == 0)
