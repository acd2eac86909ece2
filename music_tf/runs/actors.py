"""A rank that only acts, from its start until the learner ends it."""

import contextlib

from music_tf.distributed import Communicator
from music_tf.reading.command import TrainCommand
from music_tf.runs.opened_run import opened_run
from music_tf.runs.start_decisions import StartDecisions
from music_tf.training.acting_rank import ActingRank


def act(command: TrainCommand, comm: Communicator, decisions: StartDecisions) -> None:
    """Collects episodes for the learner, which runs `runs.session.learn` meanwhile."""
    with opened_run(command, comm, decisions) as run:
        rank = ActingRank(run.command.config, comm, run.command.learners)
        with contextlib.closing(rank):
            rank.serve(run.directory.write_evidence)
