"""A rank that only acts, from its start until the learner ends it."""

import contextlib

from music_tf.distributed import Communicator
from music_tf.process.watchdog import watchdog
from music_tf.reading.command import TrainCommand
from music_tf.runs.agreement import agreed, fail_together, warn_of_processors
from music_tf.runs.start_decisions import StartDecisions
from music_tf.storage.logs import log_path
from music_tf.storage.run_directory import open_run
from music_tf.training.acting_rank import ActingRank


def act(command: TrainCommand, comm: Communicator, decisions: StartDecisions) -> None:
    """Collects episodes for the learner, which runs `runs.session.learn` meanwhile."""
    path, warm_start = decisions.path, decisions.warm_start
    speaker = f"music-tf: rank {comm.rank}"
    with watchdog(command.config.hang_after, speaker, log_path(path, comm.rank)):
        comm.patient_barrier()  # the learner loads TensorFlow meanwhile
        fail_together(lambda: None, comm)
        command, record = agreed(command, warm_start.record if warm_start else None, comm)
        with contextlib.closing(open_run(path, record, command.resume, comm)) as directory:
            warn_of_processors(comm)
            with contextlib.closing(ActingRank(command.config, comm, command.learners)) as actor:
                actor.serve(directory.write_evidence)
