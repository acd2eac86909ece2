"""`music-tf train RECIPE ...`: trains a recipe, on as many MPI ranks as were started."""

import contextlib
import dataclasses
import math
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from music_tf.cli.exits import run_together
from music_tf.config.command import TrainCommand, asks_for_help, parse_train, train_help
from music_tf.config.fields import with_fields
from music_tf.errors import EXIT_DONE, EnvironmentFault, MusicError, Stopped, UsageError
from music_tf.process import (
    asked_learners,
    backstop,
    check_topology,
    die_with_parent,
    hide_gpus,
    keep_autotuning,
    launched_rank,
    launched_world_size,
    limit_threads,
    load_tensorflow,
    prepare_tensorflow,
    watchdog,
)
from music_tf.runs.callbacks import CallbackFailed
from music_tf.storage.run_directory import (
    find_source,
    missing_folders,
    prepare_directory,
    remove_empty,
)
from music_tf.tools.tracking import check_installed, tracking

if TYPE_CHECKING:
    from music_tf.distributed import Communicator
    from music_tf.storage.start import Heritage

_START_SECONDS = 300.0
_AFTER_THE_WATCHDOG = 5.0
_FAULTS = {kind.exit_code: kind for kind in (MusicError, UsageError, EnvironmentFault)}


def main(arguments: list[str]) -> int:
    """Trains, and ends the process; returns only after --help.

    Raises:
        UsageError: The command line is wrong.
        EnvironmentFault: The ranks cannot meet.
    """
    if asks_for_help(arguments):
        if launched_rank() == 0:
            train_help(arguments)
        return EXIT_DONE
    if 0 < asked_learners(arguments) <= launched_rank():
        hide_gpus()  # this rank only acts; before a module of the user's is imported
    if launched_world_size() > 1:
        die_with_parent(signal.SIGKILL)  # MPI leaves a rank alone whose mpirun was killed
    parsed: TrainCommand | UsageError
    try:
        parsed = parse_train(arguments)
    except UsageError as fault:
        if launched_world_size() == 1:
            raise
        parsed = fault  # the other ranks must hear of it: they may not have met it
    prepare_tensorflow(isinstance(parsed, TrainCommand) and parsed.may_use_gpu)
    from music_tf.distributed import Communicator  # noqa: PLC0415 - numpy, MPI: after parsing

    limit = _seconds_to_start(parsed) if launched_world_size() > 1 else math.inf
    with _watch_the_start(parsed), backstop(limit + _AFTER_THE_WATCHDOG):
        comm = Communicator()
    run_together(comm, lambda: _train(parsed, comm))


def _train(parsed: TrainCommand | UsageError, comm: "Communicator") -> None:
    """Trains, or raises on every rank what the first of them found wrong on its command line."""
    texts = comm.allgather(str(parsed) if isinstance(parsed, UsageError) else None)
    for rank, text in enumerate(texts):
        if text is not None:
            raise UsageError(text if set(texts) == {text} else f"rank {rank}: {text}")
    # Before anything that only ranks which learn, or only those which act, wait for.
    learners = comm.allgather(cast(TrainCommand, parsed).learners)
    if len(set(learners)) > 1:
        raise UsageError(f"--learners: expected the same on every rank, got {learners}")
    train(cast(TrainCommand, parsed), comm)


def train(command: TrainCommand, comm: "Communicator", callbacks: Iterable[object] = ()) -> Path:
    """Trains as a command says and returns the run's directory; a run refused leaves none.

    Every rank must call it together, with signal handlers and the environment of TensorFlow set.
    `callbacks` hear of the run on the root, see `runs.callbacks.Callback`.

    Raises:
        MusicError: The run is refused, fails, or has been stopped.
        BaseException: What a callback raised, after saving.
    """
    folders = missing_folders(command) if comm.is_root else []
    try:
        return _run(command, comm, folders, callbacks)
    except CallbackFailed as failed:
        fault = failed.fault
    except (UsageError, EnvironmentFault, Stopped, KeyboardInterrupt):
        remove_empty(folders)
        raise
    raise fault  # out of reach of our own handlers, and without them in its traceback


def _run(
    command: TrainCommand, comm: "Communicator", made: list[Path], callbacks: Iterable[object]
) -> Path:
    """Trains, and notes a directory that it makes, so that a run refused leaves none."""
    acts = 0 < command.learners <= comm.rank
    with _watch_the_start(command):
        workers, learners = command.config.workers, command.learners
        check_topology(workers, comm.size, learners, command.device, command.resume)
        if command.start is not None and not acts:
            load_tensorflow()  # what is taken over is tried on networks before anything is written
        directory, heritage, found = _prepared(command, comm)
        command = dataclasses.replace(command, config=with_fields(command.config, found))
        if comm.is_root and command.run_dir is None:
            made.insert(0, directory)
        if acts:
            from music_tf.runs.actors import act  # noqa: PLC0415 - numpy, MuJoCo

    if acts:
        act(command, comm, directory, heritage)
        return directory
    if command.may_use_gpu:
        keep_autotuning(directory)
    with _watch_the_start(command):
        load_tensorflow()
        from music_tf.runs.session import run  # noqa: PLC0415 - TensorFlow, after all checks
        from music_tf.tools.pictures import Drawing  # noqa: PLC0415 - Pillow

    track = command.track if comm.is_root else None
    try:
        with tracking(track, directory) as trackers:
            run(command, comm, directory, heritage, Drawing(), (*callbacks, *trackers))
    except MemoryError as error:
        lower = "lower --replay.capacity or --workers"
        cure = f"{lower}, and remove {directory}: it holds nothing yet"
        if any(directory.glob("checkpoints/epoch_*")):
            cure = f"go on where there is more: --run-dir {shlex.quote(str(directory))} --resume"
        raise EnvironmentFault(f"out of memory: {error}\n{cure}") from error
    return directory


def _watch_the_start(
    parsed: TrainCommand | UsageError,
) -> contextlib.AbstractContextManager[None]:
    """Ends the process if it hangs before training begins."""
    return watchdog(_seconds_to_start(parsed), f"music-tf: rank {launched_rank()}", None)


def _seconds_to_start(parsed: TrainCommand | UsageError) -> float:
    """How long a start may take, in seconds: `hang_after`, but at least `_START_SECONDS`."""
    given = parsed.config.hang_after if isinstance(parsed, TrainCommand) else 0.0
    return max(_START_SECONDS, given)


def _prepared(
    command: TrainCommand, comm: "Communicator"
) -> "tuple[Path, Heritage | None, Mapping[str, int | None]]":
    """Returns the run's directory, what it takes over, and settings that follow from its source.

    Those are the number of skills, and the one that the run is held to.

    Raises the root's fault everywhere.
    """
    found: tuple[Path, Heritage | None, Mapping[str, int | None]] | None = None
    config = command.config
    fault_text, code = "", 0
    if comm.is_root:
        try:
            if command.track is not None:
                check_installed(command.track)
            heritage = None
            if command.start is not None:
                from music_tf.runs.session import (  # noqa: PLC0415 - TensorFlow
                    found_gpu,
                    threads_of,
                )
                from music_tf.runs.warm_start import (  # noqa: PLC0415 - TensorFlow
                    best_skill,
                    try_heritage,
                    with_skills_of,
                )

                limit_threads(threads_of(command, comm))
                found_gpu(command)  # before networks are made
                source = find_source(command.start.path)
                if command.start.same_skills:
                    config = with_skills_of(config, command.start.path)
                if command.start.best_of is not None:
                    best, returns = best_skill(config, command.start.path, command.start.best_of)
                    shown = "  ".join(f"{value:.3g}" for value in returns)
                    sys.stdout.write(f"skill {best} is best at the task; mean returns: {shown}\n")
                    config = dataclasses.replace(config, pinned_skill=best)
                heritage = try_heritage(config, source, command.start.parts)
            follows = {"skills": config.skills, "pinned_skill": config.pinned_skill}
            found = prepare_directory(command), heritage, follows
        except MusicError as fault:
            fault_text, code = str(fault), fault.exit_code
    found, fault_text, code = comm.broadcast_object((found, fault_text, code))
    if found is None:
        raise _FAULTS[code](fault_text)
    return found
