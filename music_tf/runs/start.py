"""Starts a run for the command line and for Python.

Topology, run directory, warm start, threads and GPU are decided here. Importing the module loads
neither numpy nor TensorFlow, so that a refusal comes at once.
"""

import contextlib
import dataclasses
import functools
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from music_tf.config.names import KNOWN
from music_tf.config.settings import EnvConfig
from music_tf.errors import EnvironmentFault, Stopped, UsageError
from music_tf.process import tensorflow_start
from music_tf.process.children import check_extra
from music_tf.process.launcher import check_topology, launch_words, launched_rank
from music_tf.process.machine import threads_per_rank
from music_tf.process.signals import is_ctrl_c, is_guest
from music_tf.process.watchdog import watchdog
from music_tf.reading.command import TrainCommand, resume_line
from music_tf.runs.callbacks import CallbackFailed
from music_tf.runs.tracking import tracking
from music_tf.storage import run_directory

if TYPE_CHECKING:
    from music_tf.distributed import Communicator
    from music_tf.runs.session import Draw
    from music_tf.storage.warm_start import LoadedWarmStart

START_SECONDS = 300.0
"""Shortest time limit of a start, whatever `hang_after` says."""


class StartDecisions(NamedTuple):
    """What is decided before a rank learns or acts."""

    path: Path
    warm_start: "LoadedWarmStart | None" = None
    """Warm start from an earlier run, the same on every rank."""
    acts: bool = False
    claim: Callable[[], str | None] | None = None
    """Limits the threads of a learning rank and claims a GPU; returns the GPU's name, if any."""


def start(
    command: TrainCommand,
    comm: "Communicator",
    drawing: "Callable[[], Draw] | None" = None,  # makes what draws evaluations; None: no drawing
    callbacks: Iterable[object] = (),  # called on the root, see `runs.callbacks.Callback`
) -> Path:
    """Trains as a command says and returns the run directory; a refused run leaves none."""
    # All ranks call it together, after signal handlers and TensorFlow's variables are set.
    folders = run_directory.missing_folders(command) if comm.is_root else []
    path = command.run_dir
    try:
        with watch_the_start(command.config.hang_after):
            command, decisions = _decide_start(command, comm)
            path = decisions.path
            if comm.is_root and command.run_dir is None:
                folders.insert(0, path)
        if decisions.acts:
            from music_tf.runs.opened_run import act  # noqa: PLC0415 - numpy, MuJoCo

            act(command, comm, decisions)
        else:
            _learn(command, comm, decisions, drawing, callbacks)
        return decisions.path
    except CallbackFailed as failed:
        fault = failed.fault
    except (UsageError, EnvironmentFault, Stopped, KeyboardInterrupt) as ended:
        run_directory.remove_empty(folders)
        ctrl_c = isinstance(ended, KeyboardInterrupt) and is_ctrl_c(ended)
        if not ctrl_c or is_guest() or path is None:
            raise
        again = resume_line(command, path, launch_words(comm.size))
        raise run_directory.ended_at_once(path, again) from None
    raise fault  # outside of our handlers, which would catch it or appear in its traceback


def watch_the_start(hang_after: float) -> contextlib.AbstractContextManager[None]:
    return watchdog(seconds_to_start(hang_after), f"music-tf: rank {launched_rank()}", None)


def seconds_to_start(hang_after: float) -> float:
    return max(START_SECONDS, hang_after)


def _decide_start(
    command: TrainCommand, comm: "Communicator"
) -> tuple[TrainCommand, StartDecisions]:
    """Decides how a run begins; returns the command with the settings that its source implies."""
    acts = 0 < command.learners <= comm.rank
    workers, learners = command.config.workers, command.learners
    check_topology(workers, comm.size, learners, command.device, command.resume)
    path, warm_start, implied = comm.from_root(functools.partial(_prepared, command))
    config = dataclasses.replace(command.config, **implied)
    command = dataclasses.replace(command, config=config)
    claim = None if acts else functools.partial(_claim, command, comm)
    return command, StartDecisions(path, warm_start, acts, claim)


def _claim(command: TrainCommand, comm: "Communicator") -> str | None:
    learners = command.learners or comm.size
    actors = comm.actors_here(command.learners)
    tensorflow_start.limit_threads(threads_per_rank(command.config.threads, learners, actors))
    return tensorflow_start.claim_gpu(command.device == "gpu", command.may_use_gpu)


def _learn(
    command: TrainCommand,
    comm: "Communicator",
    decisions: StartDecisions,
    drawing: "Callable[[], Draw] | None",
    callbacks: Iterable[object],
) -> None:
    if command.may_use_gpu:
        tensorflow_start.keep_autotuning(decisions.path)
    with watch_the_start(command.config.hang_after):
        tensorflow_start.load_tensorflow()
        from music_tf.runs.session import learn  # noqa: PLC0415 - TensorFlow, after all checks

        draw = None if drawing is None else drawing()
    try:
        with tracking(command.track if comm.is_root else None, decisions.path) as trackers:
            learn(command, comm, decisions, draw, (*callbacks, *trackers))
    except MemoryError as error:
        lower = "lower --replay.capacity or --workers"
        cure = f"{lower}, and remove {decisions.path}: it holds nothing yet"
        if any(decisions.path.glob("checkpoints/epoch_*")):
            cure = (
                f"go on where there is more: --run-dir {shlex.quote(str(decisions.path))} --resume"
            )
        raise EnvironmentFault(f"out of memory: {error}\n{cure}") from error


def _prepared(command: TrainCommand) -> "tuple[Path, LoadedWarmStart | None, dict[str, Any]]":
    """Returns run directory, warm start, and settings that its source implies."""
    config, warm_start = command.config, None
    if config.env_id in KNOWN:  # others may say their columns when they are imported
        from music_tf.envs.registry import check_split  # noqa: PLC0415 - numpy, Gymnasium

        check_split(config)
    if command.track is not None:
        check_extra(f"--track {command.track}", command.track, command.track)
    if command.start is not None:
        from music_tf.runs.warm_start import read_start  # noqa: PLC0415 - numpy, MuJoCo

        config, warm_start = read_start(config, command.start)
    env = config.env
    if env.skills and not command.resume:
        env = _with_choices(env)
    follows = {"skills": config.skills, "pinned_skill": config.pinned_skill, "env": env}
    return run_directory.prepare_directory(command), warm_start, follows


def _with_choices(env: EnvConfig) -> EnvConfig:
    """Fixes how many skills of an earlier run, which may still learn, a new run chooses among."""
    from music_tf.envs.skill_choice import skills_of  # noqa: PLC0415 - numpy, Gymnasium

    policy = skills_of(env.skills)
    count = env.skill_count or policy.skills
    digest = env.skill_digest or policy.digest(count)
    return dataclasses.replace(env, skill_count=count, skill_digest=digest)
