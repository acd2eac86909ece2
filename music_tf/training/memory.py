"""Refuses a run that needs more memory than its hosts have, before environments are made."""

import dataclasses
import math
import socket
from typing import NamedTuple

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.process.machine import available_memory
from music_tf.replay.buffer import empty_store
from music_tf.types import EnvSpec

GIB = 2.0**30


class Share(NamedTuple):
    """What one rank holds of a run."""

    environments: int
    stores: int
    """Number of workers whose replay this rank keeps."""


def refuse_too_large(
    config: Config, comm: Communicator, share: Share, spec: EnvSpec, least: int
) -> None:
    """Compares the memory that a run needs at least with that of its hosts; all ranks refuse."""
    # Networks, minibatches and the replay of a run with a time limit do not count.
    environments = share.environments * least
    replay = 0
    if math.isinf(config.max_minutes):
        steps = config.collect.steps or spec.max_episode_steps
        rounds = config.rounds(True) + (config.epochs * config.cycles - 1) * config.rounds()
        played = rounds * config.rollouts * steps
        capacity = max(min(played, config.replay.capacity), steps)
        filled = dataclasses.replace(config.replay, capacity=capacity)
        store = empty_store(dataclasses.replace(config, replay=filled), spec)
        replay = share.stores * store.bytes
    needs = comm.allgather([socket.gethostname(), environments, replay, available_memory()])
    of_ranks = [of_rank for of_rank in needs if of_rank is not None]  # a rank has failed before
    for host in dict.fromkeys(name for name, *_ in of_ranks):
        ranks = [numbers for name, *numbers in of_ranks if name == host]
        environments, replay = (sum(numbers[place] for numbers in ranks) for place in (0, 1))
        free = min(numbers[2] for numbers in ranks)
        if environments + replay > free:
            raise UsageError(
                f"memory: about {(environments + replay) / GIB:.1f} GiB would be needed on "
                f"{host}, which has {free / GIB:.1f} GiB free\n"
                f"environments {environments / GIB:.1f} GiB: lower --workers (now "
                f"{config.workers}) or --rollouts (now {config.rollouts})\n"
                f"replay {replay / GIB:.1f} GiB: lower --replay.capacity (now "
                f"{config.replay.capacity}) or --epochs (now {config.epochs})"
            )
