"""A run directory that is opened for work, by ranks that learn and by ranks that act."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from music_tf.distributed import Communicator
from music_tf.process.watchdog import watchdog
from music_tf.reading.command import TrainCommand
from music_tf.runs.agreement import agreed, fail_together, warn_of_processors
from music_tf.runs.start import StartDecisions
from music_tf.storage.logs import log_path
from music_tf.storage.run_directory import RunDirectory, open_run
from music_tf.training.acting_rank import ActingRank


class OpenedRun(NamedTuple):
    """A run directory that a rank works in."""

    command: TrainCommand
    """With registered and measured facts of the environment."""
    record: dict[str, Any]
    directory: RunDirectory
    gpu: str | None
    stack: contextlib.ExitStack
    """Is left after the directory is closed, and while the watchdog still looks."""


@contextlib.contextmanager
def opened_run(
    command: TrainCommand, comm: Communicator, decisions: StartDecisions
) -> Iterator[OpenedRun]:
    """Opens a run once all ranks agree; every rank must call it together."""
    path, start = decisions.path, decisions.warm_start
    speaker, log = f"music-tf: rank {comm.rank}", log_path(path, comm.rank)
    with watchdog(command.config.hang_after, speaker, log), contextlib.ExitStack() as stack:
        if command.learners:
            comm.patient_barrier()  # learners load TensorFlow meanwhile
        gpu = fail_together(decisions.claim or (lambda: None), comm)
        command, record = agreed(command, start.record if start else None, comm)
        with contextlib.closing(open_run(path, record, command.resume, comm)) as directory:
            warn_of_processors(comm)
            yield OpenedRun(command, record, directory, gpu, stack)


def act(command: TrainCommand, comm: Communicator, decisions: StartDecisions) -> None:
    """Collects episodes for the learner, which runs `runs.session.learn` meanwhile."""
    with opened_run(command, comm, decisions) as run:
        rank = ActingRank(run.command.config, comm, run.command.learners)
        with contextlib.closing(rank):
            rank.serve(run.directory.write_evidence)
