"""A learner and its actors: which rank plays for which workers, and the message formats."""

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
    """A learner, which is rank 0 of its team, and its actors."""

    comm: Communicator
    """Of this team, for its messages alone."""
    learning: Communicator
    """Of the ranks with the same role in all teams."""
    config: Config
    learners: int
    number: int

    @classmethod
    def of(cls, config: Config, comm: Communicator, learners: int) -> Self:
        """Splits all ranks into teams; the first ranks learn; a collective call."""
        acts = comm.rank >= learners
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES") if acts else NO_GPU
        for rank, visible in enumerate(comm.allgather(gpu)):
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
        """Ranks of the actors at the start, and of the shares that they then play."""
        return range(1, self.comm.size)

    def workers(self, share: int) -> range:
        count = self.config.workers // self.learners // len(self.actors)
        first = self.number * len(self.actors) + share - 1
        return range(first * count, (first + 1) * count)

    @property
    def together(self) -> int:
        """Batch size of an evaluation without actors, in episodes."""
        return self.config.workers // self.learners * self.config.rollouts

    def evaluated(self, share: int, episodes: int) -> IntArray:
        """Returns the indices of the evaluation episodes of a share."""
        each = self.together // len(self.actors)
        batch, place = np.divmod(np.arange(episodes), self.together)
        return np.flatnonzero((batch % self.learners == self.number) & (place // each == share - 1))

    def visited(self, share: int, visits: int) -> IntArray:
        """Returns the indices of the evaluation visits of a share."""
        turn, learner = np.divmod(np.arange(visits), self.learners)
        return np.flatnonzero((learner == self.number) & (turn % len(self.actors) == share - 1))

    def format(self, spec: EnvSpec, steps: int | None = None) -> EpisodeFormat:
        """Returns the message format of parts of up to `steps` steps, or of whole episodes."""
        return EpisodeFormat(spec, self.config.condition_size, steps or spec.max_episode_steps)


def visit_format(config: Config) -> VisitFormat:
    return VisitFormat(config.tasks.evaluation_episodes, config.condition_size)
