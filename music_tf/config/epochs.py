"""How episodes fit into epochs that are collected by steps: what is open at an end is cut off."""

import math
from typing import NamedTuple

from music_tf.config.fields import with_fields
from music_tf.config.names import episode_steps
from music_tf.config.settings import Config
from music_tf.errors import UsageError


class Epoch(NamedTuple):
    """How much of an epoch each environment plays."""

    steps: int
    """Steps of the environment in a cycle."""
    cycles: int


def whole_epoch(steps: int, wanted: int, length: int) -> Epoch:
    """Returns an epoch of whole episodes, of nearly as many steps of an environment as wanted.

    Args:
        steps: Of a cycle; fewer where whole episodes would else take over twice what is wanted.
        wanted: Steps of the epoch.
        length: Steps of an episode.
    """
    unit = math.lcm(steps, length)
    if unit > 2 * max(wanted, length):
        steps = _largest_divisor(length, steps)
        unit = length
    return Epoch(steps, unit * max(1, round(wanted / unit)) // steps)


def with_whole_episodes(config: Config) -> Config:
    """Returns it with an epoch that cuts no episode of its environment, if it is a known one."""
    steps = config.collect.steps
    if steps is None:
        return config
    length = config.env.max_episode_steps or episode_steps(config.env_id)
    epoch = whole_epoch(steps, steps * config.cycles, length)
    return with_fields(config, {"cycles": epoch.cycles, "collect.steps": epoch.steps})


def cut_by_epochs(config: Config, length: int) -> str:
    """Says what the end of an epoch cuts off where nothing ends early; empty where nothing.

    Args:
        config: Of a run.
        length: Most steps of an episode in its environment; choices, where skills are chosen.

    Raises:
        UsageError: No episode of so many steps could come to its end.
    """
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
    """Returns the largest divisor of a number that is not over `most`."""
    return next(divisor for divisor in range(min(number, most), 0, -1) if number % divisor == 0)
