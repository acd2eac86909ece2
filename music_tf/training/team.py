"""A learner and the ranks that act for it: who plays for which workers, and how it is sent."""

import os
from typing import NamedTuple, Self

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.errors import EnvironmentFault
from music_tf.process.tensorflow_start import NO_GPU
from music_tf.training.messages import EpisodeFormat, VisitFormat
from music_tf.types import EnvSpec, IntArray


class Team(NamedTuple):
    """A rank that learns, the first of its team, and those that act for it."""

    comm: Communicator
    """Of the team, for its messages alone."""
    learning: Communicator
    """Of the ranks with the same role in all teams."""
    config: Config
    learners: int
    """How many teams there are."""
    number: int
    """Of this one."""

    @classmethod
    def of(cls, config: Config, comm: Communicator, learners: int) -> Self:
        """Makes teams of all ranks, the first of which learn; every rank must call it together.

        Raises:
            EnvironmentFault: A rank that acts sees a GPU.
        """
        acts = comm.rank >= learners
        own = os.environ.get("CUDA_VISIBLE_DEVICES") if acts else NO_GPU
        for rank, visible in enumerate(comm.allgather(own)):
            if visible != NO_GPU:
                raise EnvironmentFault(
                    f"rank {rank} only acts, and sees a GPU: CUDA_VISIBLE_DEVICES is {visible!r}\n"
                    "a module that the run imports has changed it; leave that to the learner"
                )
        each = (comm.size - learners) // learners
        number = (comm.rank - learners) // each if acts else comm.rank
        team, learning = comm.group(number), comm.group(int(acts))
        if learners == 1:
            learning = Communicator(alone=True)
        return cls(team, learning, config, learners, number)

    @property
    def actors(self) -> range:
        """Ranks that act, in this group of one learner and its actors."""
        return range(1, self.comm.size)

    def among_all(self, rank: int) -> int:
        """Returns the number that a rank that acts has among all ranks."""
        return self.learners + self.number * len(self.actors) + rank - 1

    def workers(self, rank: int) -> range:
        """Returns the workers that a rank plays for."""
        share = self.config.workers // self.learners // len(self.actors)
        first = self.number * len(self.actors) + rank - 1
        return range(first * share, (first + 1) * share)

    @property
    def together(self) -> int:
        """Episodes of an evaluation that the learner would play at a time if it did."""
        return self.config.workers // self.learners * self.config.rollouts

    def evaluated(self, rank: int, episodes: int) -> IntArray:
        """Returns the evaluation episodes that a rank plays: those of its own environments."""
        each = self.together // len(self.actors)
        indices = np.arange(episodes)
        batch, place = np.divmod(indices, self.together)
        mine: IntArray = indices[
            (batch % self.learners == self.number) & (place // each == rank - 1)
        ]
        return mine

    def visited(self, rank: int, visits: int) -> IntArray:
        """Returns the evaluation visits to tasks that a rank plays, by their numbers."""
        turn, learner = np.divmod(np.arange(visits), self.learners)
        mine: IntArray = np.flatnonzero(
            (learner == self.number) & (turn % len(self.actors) == rank - 1)
        )
        return mine

    def format(self, spec: EnvSpec, steps: int | None = None) -> EpisodeFormat:
        """Returns how episodes are sent: parts of up to `steps`, or whole ones."""
        return EpisodeFormat(spec, self.config.condition_size, steps or spec.max_episode_steps)


def visit_format(config: Config) -> VisitFormat:
    """Returns how visits to tasks are sent."""
    return VisitFormat(config.tasks.explore + config.tasks.adapt, config.condition_size)
