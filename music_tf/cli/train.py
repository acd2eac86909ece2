"""`music-tf train RECIPE ...`: trains a recipe, on as many MPI ranks as were started."""

import math
import signal
from typing import TYPE_CHECKING, cast

from music_tf.cli.exits import run_together
from music_tf.config.fields import fields_of
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.process.children import die_with_parent
from music_tf.process.launcher import launched_rank, launched_world_size
from music_tf.process.tensorflow_start import hide_gpus, prepare_tensorflow
from music_tf.process.watchdog import backstop
from music_tf.reading.command import TrainCommand, parse_train, train_help
from music_tf.reading.options import asks_for_help, last_value, named_as_typed
from music_tf.runs.start import seconds_to_start, start, watch_the_start
from music_tf.tools import new_drawing

if TYPE_CHECKING:
    from music_tf.distributed import Communicator

_LATER_S = 5.0


def main(arguments: list[str]) -> int:
    if asks_for_help(arguments):
        if launched_rank() == 0:
            train_help(arguments)
        return EXIT_DONE
    learners = last_value("learners", arguments)
    if learners.isdecimal() and 0 < int(learners) <= launched_rank():
        hide_gpus()  # this rank only acts; the user's module is imported later
    if launched_world_size() > 1:
        die_with_parent(signal.SIGKILL)  # MPI does not end the ranks of a killed mpirun
    prepare_tensorflow(shows_gpus=True)  # a user's module may import it
    parsed: TrainCommand | UsageError
    try:
        parsed = parse_train(arguments)
    except UsageError as fault:
        if launched_world_size() == 1:
            raise
        parsed = fault  # raised below, on all ranks
    prepare_tensorflow(isinstance(parsed, TrainCommand) and parsed.may_use_gpu)
    from music_tf.distributed import Communicator  # noqa: PLC0415 - numpy, MPI: after parsing

    hang_after = parsed.config.hang_after if isinstance(parsed, TrainCommand) else 0.0
    limit = math.inf if launched_world_size() == 1 else seconds_to_start(hang_after) + _LATER_S
    with watch_the_start(hang_after), backstop(limit):
        comm = Communicator()
    run_together(comm, lambda: _train(parsed, comm))


def _train(parsed: TrainCommand | UsageError, comm: "Communicator") -> None:
    """Trains, or raises on every rank the first fault of a command line."""
    texts = comm.allgather(str(parsed) if isinstance(parsed, UsageError) else None)
    for rank, text in enumerate(texts):
        if text is not None:
            raise UsageError(text if set(texts) == {text} else f"rank {rank}: {text}")
    command = cast(TrainCommand, parsed)
    learners = comm.allgather(command.learners)  # before learners and actors take other paths
    if len(set(learners)) > 1:
        raise UsageError(f"--learners: expected the same on every rank, got {learners}")
    with named_as_typed([field.name for field in fields_of(command.config)]):
        start(command, comm, new_drawing)
