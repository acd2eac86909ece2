"""A training run from its first line to its summary: resume, epochs, checkpoints, tables."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.config.command import TrainCommand
from music_tf.config.settings import Config
from music_tf.config.start import other_source
from music_tf.config.stored import StoredRun, run_to_json, stored_start
from music_tf.distributed import Communicator
from music_tf.envs.registry import EnvironmentInfo
from music_tf.errors import NumbersFault, Stopped, UsageError
from music_tf.process import (
    available_cores,
    limit_threads,
    longer_timeout,
    stop_requested,
    threads_per_rank,
    watchdog,
)
from music_tf.runs.agreement import check_alike
from music_tf.runs.judging import EPISODES, by_metric, compare
from music_tf.runs.processors import warn_of_differences
from music_tf.runs.progress import Progress
from music_tf.storage.checkpoint import Checkpoints, save_weights
from music_tf.storage.gate import success_rate
from music_tf.storage.metrics import PATHS_TAG, MetricsWriter, metrics_of
from music_tf.storage.results import BEFORE, read_metrics
from music_tf.storage.run_directory import RunDirectory, log_path, open_run
from music_tf.storage.start import Heritage, start_line, taken_before
from music_tf.training.build import build_trainer
from music_tf.training.evaluation import Evaluation
from music_tf.types import Episodes, Metrics

SLOWER = 0.5
"""Share of the step size that a run goes on with after its numbers went bad."""
OTHER_CYCLES = 10**9
"""Added to the cycle counter on a rollback, so that every random stream draws other numbers."""
COMPACT_EVERY = 20
"""Checkpoints from one that writes the whole replay to the next; others write what is new."""
_PAUSE_SECONDS = 1.0
"""Before a save is tried again."""
_LOGGER = logging.getLogger(__name__)
DrawPaths: TypeAlias = Callable[[Episodes, EnvironmentInfo], npt.NDArray[np.uint8]]
"""A picture [height, width, 3] of where the object went in some episodes."""


def run(
    command: TrainCommand,
    comm: Communicator,
    path: Path,
    heritage: Heritage | None = None,
    begun: Callable[[Path], None] | None = None,
    draw_paths: DrawPaths | None = None,
) -> None:
    """Trains as a command says, in a directory of its own; every rank must call it together.

    A new run that is refused leaves nothing behind.

    Args:
        command: What the user asked for.
        comm: The ranks.
        path: The run directory.
        heritage: What a new run takes over from an earlier one, the same on every rank.
        begun: Called with the directory by the root once nothing refuses the run any more.
        draw_paths: Draws where the object went in an evaluation; None draws nothing.

    Raises:
        UsageError: The directory or the configuration cannot be used.
        EnvironmentFault: The environment or the disk is broken.
        NumbersFault: Numbers of ours went bad.
        Stopped: A signal asked for it; everything is saved and can be resumed.
    """
    limit_threads(threads_per_rank(command.config.threads, comm.size))
    comm.local_workers(command.config.workers)
    speaker = f"music-tf: rank {comm.rank}"
    with watchdog(command.config.hang_after, speaker, log_path(path, comm.rank)):
        record = run_to_json(_stored(command, heritage))
        check_alike(record, command.resume, comm)
        directory = open_run(path, record, command.resume, comm)
        try:
            session = _built(command, comm, directory, heritage, draw_paths)
            if begun is not None and comm.is_root:
                begun(path)
            session.run()
        finally:
            directory.close()


def _built(
    command: TrainCommand,
    comm: Communicator,
    directory: RunDirectory,
    heritage: Heritage | None,
    draw_paths: DrawPaths | None,
) -> "Session":
    try:
        return Session(command, comm, directory, heritage, draw_paths)
    except (UsageError, Stopped) as fault:
        if not command.resume:
            directory.discard()
        if isinstance(fault, Stopped):
            raise Stopped(f"{fault}, {_after_an_early_stop(command)}") from fault
        raise


def _after_an_early_stop(command: TrainCommand) -> str:
    if command.resume:
        return f"to go on:\nmusic-tf train {command.recipe} --run-dir {command.run_dir} --resume"
    return "nothing is saved yet: start it anew"


class Session:
    """One job's part of a run: what it shows, writes and saves around the trainer."""

    def __init__(
        self,
        command: TrainCommand,
        comm: Communicator,
        directory: RunDirectory,
        heritage: Heritage | None = None,
        draw_paths: DrawPaths | None = None,
    ) -> None:
        """Builds the trainer and brings it to where the run was left, or to where it starts."""
        self._command = command
        self._draw_paths = draw_paths
        self._stored = _stored(command, heritage)
        self._config = command.config
        self._comm = comm
        self._directory = directory
        self._origin = self._stored.init_from
        if command.resume:
            self._origin = stored_start(directory.path)
        self._before = taken_before(self._origin, directory.path)
        self._progress = Progress(leading_metric(command.config), shown=comm.is_root)
        self._progress.banner(_banner(command, comm, directory.path, self._origin))
        warn_of_differences(comm)
        self._trainer = build_trainer(command.config, comm)
        if not self._trainer.envs.spec.goal_dim:
            self._progress.leading = "eval/return"
        self._checkpoints = Checkpoints(directory.checkpoints, comm)
        self._terms = tuple(map(type, self._config.rewards.values()))
        self._goals = self._trainer.envs.spec.goal_dim > 0
        self._metrics = metrics_of(self._terms, self._goals)
        self._row: Metrics = {}
        self._best: float | None = None
        self._saved_cycle = -1
        if command.resume:
            if command.notice and comm.is_root:
                _LOGGER.warning("%s", command.notice)
            if not self._restore():
                self._begin_anew()
        elif heritage is not None:
            self._begin_from(heritage)
        epoch = self._trainer.counters.epoch
        self._writer = (
            MetricsWriter(
                directory.path,
                resume_after=epoch if command.resume else None,
                warn=directory.disk_warning,
                terms=self._terms,
                goals=self._goals,
            )
            if comm.is_root
            else None
        )

    def run(self) -> None:
        """Trains to the last epoch, or for as long as allowed, then compares and sums up."""
        trainer, config = self._trainer, self._config
        if self._writer is not None:
            self._writer.write_text("configuration", _as_text(self._stored))
        self._progress.start(config.epochs, trainer.counters.epoch)
        start = time.monotonic()
        before, cycle = trainer.counters.elapsed_s, trainer.counters.cycle
        try:
            while trainer.counters.epoch < config.epochs and not self._out_of_time():
                try:
                    row = trainer.run_epoch(self._on_cycle, self._show)
                    if row is None:
                        self._stop()
                    self._finish_epoch(row)
                except NumbersFault as fault:
                    self._roll_back(fault)
        finally:
            self._progress.stop()
        if trainer.counters.cycle == cycle:
            self._progress.banner([self._why_nothing()])
        self._make_sure_it_is_saved()
        self._summarize(before + time.monotonic() - start)

    def _on_cycle(self, done: int) -> bool:
        steps = self._trainer.counters.env_steps
        self._progress.cycle(done, self._config.cycles, steps)
        return stop_requested()

    def _show(self, episodes: Episodes) -> None:
        """Lets the root show an evaluation: where the object went, and what terms have to show."""
        trainer, writer = self._trainer, self._writer
        if writer is None:
            return
        steps, info = trainer.counters.env_steps, trainer.envs.info
        if self._draw_paths is not None and info.object is not None:
            writer.write_image(PATHS_TAG, self._draw_paths(episodes, info), steps, "paths")
        for term in trainer.active_terms():
            weights = trainer.update.weights()
            for tag, values in term.histograms(weights, episodes).items():
                writer.write_histogram(tag, values, steps)
            for tag, picture in term.pictures(weights, episodes).items():
                writer.write_image(tag, picture, steps)

    def _finish_epoch(self, row: Metrics) -> None:
        epoch = self._trainer.counters.epoch
        self._row = row
        self._trainer.check_equal()
        if self._writer is not None:
            self._writer.write(dict.fromkeys(self._metrics) | row)
        self._keep_best(row)
        if epoch % self._config.checkpoint_every == 0:
            self._save()
        self._progress.epoch(row)
        if self._comm.any(stop_requested()) and epoch < self._config.epochs:
            self._stop()

    def _out_of_time(self) -> bool:
        """Whether the time limit forbids another epoch; an interrupted one is always finished."""
        if self._trainer.log.cycles > 0:
            return False
        limit = 60.0 * self._config.max_minutes
        return self._comm.any(self._trainer.counters.elapsed_s >= limit)

    def _why_nothing(self) -> str:
        """Says why a resumed run has nothing left to train."""
        counters, config = self._trainer.counters, self._config
        minutes = f"{counters.elapsed_s / 60.0:.1f} of {config.max_minutes:g} minutes"
        return (
            f"nothing left to train: {counters.epoch} of {config.epochs} epochs and {minutes} are "
            "used; to go on, give --epochs or --max-minutes a larger number"
        )

    def _keep_best(self, row: Metrics) -> None:
        """Lets the root keep the weights with the best success rate, the later ones of equals."""
        success = row.get("eval/success_rate")
        worse = success is None or (self._best is not None and success < self._best)
        if worse or not self._comm.is_root:
            return
        folder = self._directory.checkpoints / "best"
        if save_weights(folder, self._trainer.weights(), self._meta(success)):
            self._best = success

    def _save(self) -> None:
        trainer = self._trainer
        number = trainer.counters.epoch // self._config.checkpoint_every
        compact = (number > 0 and number % COMPACT_EVERY == 0) or self._checkpoints.crowded
        rows = trainer.of_workers(everything=compact)
        with longer_timeout():
            saved = self._checkpoints.save(
                trainer.counters.epoch,
                trainer.shared(),
                {_worker_name(worker): new for worker, new in rows.items()},
                self._meta(self._best),
                compact,
            )
        if saved:
            trainer.replay.mark_saved()
            self._saved_cycle = trainer.counters.cycle

    def _meta(self, best: float | None) -> dict[str, Any]:
        """Returns what a checkpoint says beside its arrays."""
        return self._trainer.meta() | {"best_success_rate": best, BEFORE: self._before}

    def _make_sure_it_is_saved(self) -> None:
        """Saves the present state unless that is done, with new tries where the disk fails.

        Raises:
            EnvironmentFault: Three saves in a row failed.
        """
        cycle, pause = self._trainer.counters.cycle, 0.0
        while self._saved_cycle != cycle:
            time.sleep(pause)
            self._save()
            pause = _PAUSE_SECONDS

    @longer_timeout()
    def _restore(self) -> bool:
        """Takes over the newest intact checkpoint; returns whether there is one.

        Raises:
            UsageError: It is not one of this run, whatever its digests say.
        """
        trainer = self._trainer
        workers = {worker: _worker_name(worker) for worker in trainer.replay.shards}
        restored = self._checkpoints.restore(sorted(workers.values()), trainer.expected())
        if restored is None:
            return False
        try:
            trainer.load(restored.arrays, restored.meta)
            trainer.load_workers(
                {worker: restored.shards[name] for worker, name in workers.items()}
            )
            self._best = success_rate(restored.meta.get("best_success_rate"))
        except ValueError as error:
            raise UsageError(
                f"{self._directory.path}: the checkpoint of epoch {restored.epoch} does not fit "
                f"config.json\n{error}"
            ) from error
        self._saved_cycle = trainer.counters.cycle
        self._row = {}
        return True

    def _begin_from(self, heritage: Heritage) -> None:
        """Takes over parts of an earlier run, which is not needed from here on."""
        start = self._command.start
        found = heritage.record
        if start and self._comm.is_root:
            for note in other_source(start, found.get("epoch"), found.get("env_id")):
                _LOGGER.warning("%s", note)
        self._trainer.start_from(heritage.arrays)
        self._make_sure_it_is_saved()

    def _begin_anew(self) -> None:
        """Accepts that there is nothing to resume from, unless the run needs another to start.

        Raises:
            UsageError: It does.
        """
        path = self._directory.path
        if self._origin is not None:
            raise UsageError(
                f"{path}: cut off before it had saved what it took from {self._origin.get('run')}\n"
                "start it anew with --init-from, in another --run-dir"
            )
        _LOGGER.warning("%s: no checkpoint, starting anew", self._directory.checkpoints)

    def _roll_back(self, fault: NumbersFault) -> None:
        """Goes back to the newest checkpoint, once in a run, with smaller steps and other draws.

        Raises:
            NumbersFault: It has been done before, or there is nothing to go back to.
        """
        trainer = self._trainer
        self._directory.write_evidence(fault.evidence)
        elapsed = trainer.counters.elapsed_s
        best = self._best
        if trainer.update.step_scale != 1.0 or not self._restore():
            raise fault
        self._best = best  # of weights that are still in their folder
        trainer.counters.elapsed_s = elapsed
        trainer.counters.cycle += OTHER_CYCLES
        trainer.update.scale_steps(SLOWER)
        trainer.replay.mark_saved()
        self._progress.go_back(trainer.counters.epoch)
        if self._writer is not None:
            after = trainer.counters.epoch
            self._writer = MetricsWriter(
                self._directory.path,
                resume_after=after,
                warn=self._directory.disk_warning,
                terms=self._terms,
                goals=self._goals,
            )
            _LOGGER.warning(
                "%s\nback to the checkpoint of epoch %d, going on with %g of the step size and "
                "other random numbers; a second time ends the run",
                *(fault, after, SLOWER),
            )

    def _stop(self) -> NoReturn:
        self._progress.stop()
        counters, done = self._trainer.counters, "stopped and saved"
        if self._config.collect.steps and self._trainer.log.cycles:
            done = f"stopped; saved is epoch {counters.epoch}, whose next will begin anew,"
        else:
            self._make_sure_it_is_saved()
        raise Stopped(
            f"{done} after {counters.env_steps} steps; to go on:\n"
            f"music-tf train {self._command.recipe} --run-dir {self._directory.path} --resume"
        )

    def _summarize(self, wall_s: float) -> None:
        """Compares the agent with simple policies, sums the run up, and says what comes next."""
        self._progress.banner(["comparing with simple policies on the same episodes ..."])
        evaluation = Evaluation(self._trainer.envs, self._config, self._comm)
        policies = compare(evaluation, self._trainer.policy())
        path = self._directory.path
        row = self._row or read_metrics(path, self._trainer.counters.epoch)
        self._directory.write_summary(
            {
                "metrics": {name: row[name] for name in self._metrics if name in row},
                "evaluation": policies,
                "wall_s": wall_s,
                "training_s": self._trainer.counters.elapsed_s,
                "env_steps": self._trainer.counters.env_steps,
                "updates": self._trainer.counters.updates,
                "epochs": self._trainer.counters.epoch,
                "ranks": self._comm.size,
            }
        )
        if policies:
            title = f"{self._config.env_id}, {EPISODES} episodes"
            self._progress.final_table(by_metric(policies), title)
        self._progress.banner(
            [
                f"run directory: {path}",
                f"watch:  tensorboard --logdir {path} --host localhost",
                f"play:   music-tf play {path}",
            ]
        )


def leading_metric(config: Config) -> str:
    """Returns the metric that a recipe is about."""
    return "eval/success_rate" if "task" in config.rewards else "eval/object_comotion_m"


def _worker_name(worker: int) -> str:
    return f"worker_{worker:04d}"


def _stored(command: TrainCommand, heritage: Heritage | None) -> StoredRun:
    record = heritage.record if heritage else None
    return StoredRun(command.recipe, command.preset, command.arguments, command.config, record)


def _as_text(stored: StoredRun) -> str:
    text = json.dumps(run_to_json(stored), indent=2)
    return "\n".join(f"    {line}" for line in text.splitlines())


def _banner(
    command: TrainCommand, comm: Communicator, path: Path, origin: Mapping[str, Any] | None
) -> list[str]:
    config = command.config
    count, steps = config.workers * config.rollouts, config.collect.steps
    played = f"{count} episodes" if steps is None else f"{steps} steps in {count} environments"
    ratio = config.collect.updates_per_step
    updates = f"{config.updates} updates" if ratio is None else f"{ratio:g} updates per step"
    batch = config.workers * config.replay.batch_size
    return [
        f"music_tf: {command.recipe} ({command.preset}) on {config.env_id}, seed {config.seed}",
        f"workers {config.workers} on {comm.size} rank{'s' if comm.size > 1 else ''} of "
        f"{available_cores()} cores, {threads_per_rank(config.threads, comm.size)} "
        f"thread(s) each; global batch {batch}",
        f"an epoch is {config.cycles} cycles of {played} and {updates}",
        *([start_line(origin)] if origin is not None else []),
        f"run directory: {path}",
    ]
