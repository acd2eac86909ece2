"""A training run from its first line to its summary: resume, epochs, checkpoints, metrics."""

import contextlib
import dataclasses
import itertools
import json
import logging
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from music_tf.config.fields import show_option
from music_tf.config.names import is_local
from music_tf.config.warm_start import other_source
from music_tf.distributed import Communicator
from music_tf.envs.registry import EnvironmentInfo
from music_tf.envs.repeating import check_steps, repeats_itself
from music_tf.errors import (
    FROM_USERS,
    EnvironmentFault,
    MusicError,
    NumbersFault,
    Stopped,
    UsageError,
    error_line,
    place_of,
)
from music_tf.gate import success_rate
from music_tf.process.launcher import launch_words
from music_tf.process.signals import ending_at_once, is_guest, since_launch, stop_requested
from music_tf.process.watchdog import longer_timeout
from music_tf.reading.command import TrainCommand, allowing, resume_line
from music_tf.reading.stored import read_record, runs_root, stored_start
from music_tf.runs.agreement import fail_together
from music_tf.runs.callbacks import CallbackFailed, Listeners
from music_tf.runs.comparison import compare
from music_tf.runs.cycle_evaluations import CycleEvaluations
from music_tf.runs.first_lines import first_lines, last_line, longer
from music_tf.runs.key_metrics import explanation, key_metrics, shortfalls, verdict, without_unpaid
from music_tf.runs.opened_run import opened_run
from music_tf.runs.progress import Progress
from music_tf.runs.start import StartDecisions
from music_tf.runs.warm_start import take_over
from music_tf.runs.worlds import Worlds
from music_tf.storage.checkpoint import Checkpoints, save_weights
from music_tf.storage.metrics import EvaluationPicture, MetricsWriter, known_to
from music_tf.storage.results import BEFORE, LOSSES, read_metrics
from music_tf.storage.run_directory import RunDirectory, link_latest, refuse_too_many
from music_tf.storage.warm_start import LoadedWarmStart, taken_before
from music_tf.training.actors import Actors, Ranks
from music_tf.training.adaptation import Adaptations
from music_tf.training.build import build_trainer
from music_tf.training.counters import EpochLog
from music_tf.training.demonstrations import checked, read_demonstrations
from music_tf.training.parts import TaskFamily
from music_tf.types import Episodes, Metrics

SLOWER = 0.5
"""Factor on the step size after a rollback."""
OTHER_CYCLES = 10**9
"""Added to the cycle counter on a rollback, so that every random stream draws other numbers."""
COMPACT_EVERY = 20
"""One checkpoint in so many writes the whole replay; the others write new episodes alone."""
_SETTLED = 3
"""Cycles after which all graphs are compiled and the pace is steady."""
_PAUSE_SECONDS = 1.0
_LOGGER = logging.getLogger(__name__)
Draw: TypeAlias = Callable[[Path, Episodes, EnvironmentInfo], Sequence[EvaluationPicture]]


def learn(
    command: TrainCommand,
    comm: Communicator,
    decisions: StartDecisions,  # run directory, warm start, claim of threads and GPU
    draw: Draw | None = None,  # draws evaluations; None: no drawing
    callbacks: Iterable[object] = (),  # called on the root, see `runs.callbacks.Callback`
) -> None:
    """Trains as a command says, in its run directory; all learning ranks must call it together."""
    # A new run that is refused leaves nothing behind.
    root = runs_root().absolute()  # before the user's code may change the working directory
    with opened_run(command, comm, decisions) as run:
        command, directory = run.command, run.directory
        with _logged(directory):
            ranks = Ranks(comm, gpu=run.gpu)
            try:
                if command.learners:
                    acting = run.stack.enter_context(Actors(command.config, comm, command.learners))
                    ranks = Ranks(acting.learning, acting, run.gpu)
                listeners = Listeners(callbacks if comm.is_root else ())
                session = Session(command, ranks, directory, draw, listeners)
                session.begin(decisions.warm_start)
            except (UsageError, EnvironmentFault, Stopped, KeyboardInterrupt) as ended:
                cure = "nothing is saved yet: start it again"
                if command.resume:
                    line = resume_line(command, directory.path, launch_words(comm.size))
                    cure = f"no setting has changed yet; to resume:\n{line}"
                else:
                    directory.discard()
                if isinstance(ended, Stopped):
                    raise Stopped(f"{ended}, {cure}") from ended
                raise
            if comm.is_root:
                link_latest(directory.path, root)
            with contextlib.closing(session):
                session.run(run.record)


@contextlib.contextmanager
def _logged(directory: RunDirectory) -> Iterator[None]:
    """Logs the traceback of a bug; that of the user's code is then shown as its line alone."""
    try:
        yield
    except (MusicError, MemoryError, CallbackFailed):
        raise
    except Exception as bug:
        if is_guest() or not place_of(bug):
            raise
        raise MusicError(f"{error_line(bug)}\nthe whole traceback is in {directory.log}") from bug


class Session:
    """What one job of a run shows, writes and saves around the trainer; call `begin` first."""

    def __init__(
        self,
        command: TrainCommand,
        ranks: Ranks,
        directory: RunDirectory,
        draw: Draw | None,
        listeners: Listeners,
    ) -> None:
        self._command, self._config = command, command.config
        self._ranks, self._comm, self._directory = ranks, ranks.learning, directory
        self._draw, self._listeners = draw, listeners
        self._resuming = resume_line(command, directory.path, launch_words(ranks.size))
        self._progress = Progress(shown=self._comm.is_root)
        self._checkpoints = Checkpoints(directory.checkpoints, self._comm)
        self._row: Metrics = {}
        self._best: float | None = None
        self._saved_cycle = -1
        self._learned: set[str] = set()
        self._unsaved_epochs = 0
        """Epochs that were finished in this job since the newest checkpoint."""
        self._finishes_first = self._told_of_success = False
        self._forgets = command.without_replay

    def begin(self, warm_start: LoadedWarmStart | None) -> None:
        """Builds the trainer, then restores its newest checkpoint or takes over the warm start."""
        command, directory, comm = self._command, self._directory, self._comm
        begun_from = warm_start.record if warm_start else None
        origin = stored_start(directory.path) if command.resume else begun_from
        self._before = taken_before(origin, directory.path)
        self._losses: list[dict[str, Any]] = []
        self._progress.banner(first_lines(command, self._ranks, origin))
        self._build()
        if command.notice and command.resume and comm.is_root:
            _LOGGER.warning("%s", command.notice)
        if command.resume and not self._restore():
            words = map(str, read_record(directory.path, "arguments")["arguments"])
            if origin is not None or any(word.startswith("--demonstrations") for word in words):
                raise UsageError(
                    f"{directory.path}: stopped before it had saved what it took over\nstart it "
                    "again with its --init-from or --demonstrations, in another --run-dir"
                )
            _LOGGER.warning("%s: no checkpoint, starting from scratch", directory.checkpoints)
        self._launched_before = self._trainer.counters.wall_s
        if warm_start is not None and not command.resume:
            record, wanted = warm_start.record, command.start
            if wanted and comm.is_root:
                for note in other_source(wanted, record.get("epoch"), record.get("env_id")):
                    _LOGGER.warning("%s", note)
            take_over(self._trainer, warm_start)  # the source is not needed from here on
        demonstrates = command.demonstrations and (self._forgets or not command.resume)
        if demonstrates:
            self._demonstrate(command.demonstrations)
        if demonstrates or (warm_start is not None and not command.resume):
            self._make_sure_it_is_saved()
        fail_together(directory.keep_record, comm)
        self._writer = self._opened_writer(self._trainer.counters.epoch if command.resume else None)
        self._progress.banner([f"run directory: {directory.path}"])  # as nothing can be refused now

    def _build(self) -> None:
        """Builds the trainer, tries the environment, and fixes the columns of metrics.csv."""
        config, ranks = self._config, self._ranks
        self._trainer = build_trainer(config, self._comm, ranks.actors)
        if ranks.gpu is not None:
            self._trainer.update.use_xla()
            self._progress.banner([self._trainer.copy_replay()])
        self._try_environment()
        self._progress.banner(self._trainer.notices)
        self._keep_tasks()
        self._metrics = known_to(config)
        goals = self._trainer.envs.spec.goal_dim > 0
        self._progress.key_metrics = key_metrics(config, self._trainer.envs.info, goals)
        beside = "random actions in brackets"
        self._progress.banner(explanation(self._progress.key_metrics, beside))
        of_run = self._trainer, self._directory.path, self._directory.disk_warning
        self._worlds, self._between = Worlds(*of_run), CycleEvaluations(*of_run)

    def run(self, record: Mapping[str, Any]) -> None:
        """Trains to the last epoch or `max_minutes`, then evaluates; TensorBoard shows `record`."""
        trainer, config, progress = self._trainer, self._config, self._progress
        if self._has_ended():
            return
        if self._writer is not None:
            text = textwrap.indent(json.dumps(record, indent=2), "    ")
            self._writer.write_text("configuration", text)

        actors, cycles = self._ranks.actors, itertools.count(1)

        def on_cycle(done: int) -> bool:
            if actors is not None and trainer.counters.updates and next(cycles) == _SETTLED:
                progress.banner([actors.verdict()])
            progress.cycle(done, config.cycles, trainer.counters.env_steps)
            self._check_learned()
            self._between.end_cycle()
            self._count_seconds()
            self._listeners.tell("on_cycle", dataclasses.replace(trainer.counters))
            stopping = stop_requested() or self._listeners.fault is not None
            return stopping and not self._has_to_finish()

        seconds = 60.0 * config.max_minutes - trainer.counters.elapsed_s
        progress.start(config.epochs, trainer.counters.epoch, seconds)
        try:
            while trainer.log.cycles or not trainer.is_over():  # an interrupted epoch is completed
                if trainer.unevaluated:  # as if the run had not ended with the last epoch
                    self._writer = self._opened_writer(trainer.counters.epoch - 1)
                    self._write(trainer.unevaluated | {"time/wall_s": trainer.counters.wall_s})
                try:
                    row = trainer.run_epoch(on_cycle, self._show)
                    if row is None:
                        self._stop()
                    self._finish_epoch(row)
                except NumbersFault as fault:
                    self._roll_back(fault)
        finally:
            progress.stop()
        self._make_sure_it_is_saved()
        if self._comm.any(self._listeners.fault is not None):
            self._stop()
        self._summarize()

    def _has_ended(self) -> bool:
        """Says so if a resumed run has nothing left to train, and was summed up."""
        trainer, epoch = self._trainer, self._trainer.counters.epoch
        over = not trainer.log.cycles and trainer.is_over()
        if not self._comm.any(over and self._comm.is_root and self._directory.summed_up(epoch)):
            return False
        self._make_sure_it_is_saved()
        text = f"nothing left to train: {last_line(self._config, trainer.counters)}; to go on:"
        self._progress.banner([text, self._going_on()])
        return True

    def _going_on(self) -> str:
        """Returns what continues the run beyond its epochs or minutes."""
        name, value = longer(self._config, self._trainer.counters)
        if is_local(self._config.env_id):
            return f"music_tf.load_run({str(self._directory.path)!r}).resume({name}={value})"
        return f"{self._resuming} {show_option(name)} {value}"

    def close(self) -> None:
        trainer = self._trainer
        for envs in (trainer.envs, trainer.evaluated, self._between.envs):
            with contextlib.suppress(*FROM_USERS):
                if envs is not None:
                    envs.close()

    def _try_environment(self) -> None:
        """Tries a step before anything is stored; reports an environment that does not repeat."""
        config, envs = self._config, self._trainer.envs
        envs.reset([0], [0])
        fail_together(lambda: check_steps(envs) if self._comm.is_root else None, self._comm)
        paid = "task" in config.rewards
        if self._comm.is_root and not (config.env.remake or repeats_itself(envs, rewards=paid)):
            text = "does not repeat itself under one seed, so neither does this run"
            self._progress.banner([f"{config.env_id} {text}; music-tf check-env knows more"])

    def _demonstrate(self, sources: Sequence[str]) -> None:
        trainer, comm = self._trainer, self._comm
        stored = comm.from_root(lambda: read_demonstrations(sources))
        episodes = fail_together(lambda: checked(trainer, stored), comm)
        if episodes is not None:
            trainer.demonstrate(episodes)
            bare = int((~episodes.desired_goal.any(axis=1)).sum())
            text = f"demonstrations: {len(stored)} episodes"
            text += f", {bare} without a goal are relabelled only" if bare else ""
            self._progress.banner([text])

    def _keep_tasks(self) -> None:
        family, path, comm = self._trainer.part(TaskFamily), self._directory.path, self._comm
        if family is None:
            return
        drawn = family.tasks.record()
        kept = comm.from_root(lambda: read_record(path).get("tasks"))
        if kept is None:
            refuse_too_many(drawn)
            fail_together(lambda: self._directory.keep_tasks(drawn), comm)
        elif kept != drawn:
            raise UsageError(
                f"{path}: config.json holds other tasks than {self._config.env_id} draws now\n"
                "the environment has changed since: start a new run, in another --run-dir"
            )

    def _show(self, played: Episodes | Adaptations) -> None:
        """Writes pictures of an evaluation, and pictures and histograms of terms, on the root."""
        trainer, writer = self._trainer, self._writer
        self._listeners.tell("on_evaluation", played)
        if writer is None or isinstance(played, Adaptations):
            return
        steps, info = trainer.counters.env_steps, trainer.envs.info
        early, last = int(played.succeeded.sum()), played.success.any()
        if self._config.goals == "environment" and early and not (last or self._told_of_success):
            self._told_of_success = True
            _LOGGER.warning(
                "%d of %d evaluation episodes succeed at some step, none at the last, which alone "
                "counts as success\nif once is enough, let step end the episode there (terminated)",
                *(early, len(played.success)),
            )
        drawn = () if self._draw is None else self._draw(self._directory.path, played, info)
        for tag, file, pixels in drawn:
            writer.write_image(tag, pixels, steps, file.format(steps=steps))
        weights = trainer.update.weights()
        for term in trainer.active_terms():
            for tag, values in term.histograms(weights, played).items():
                writer.write_histogram(tag, values, steps)
            for tag, picture in term.pictures(weights, played).items():
                writer.write_image(tag, picture, steps)

    def _finish_epoch(self, row: Metrics) -> None:
        """Checks that ranks are equal, writes metrics and best weights, and saves when due."""
        trainer, config = self._trainer, self._config
        epoch = trainer.counters.epoch
        self._unsaved_epochs += 1
        self._worlds.end_epoch()
        row["time/wall_s"] = self._count_seconds()
        self._row = row
        trainer.check_equal()
        if not row.keys() <= self._metrics.keys():
            self._save()  # so that the epoch need not be repeated
            self._refuse_undeclared(row)
        self._write(row)
        success = row.get("eval/success_rate")
        if self._comm.is_root and success is not None and success >= (self._best or 0.0):
            folder = self._directory.checkpoints / "best"  # also of a tie
            if save_weights(folder, trainer.weights(), self._meta(success)):
                self._best = success
        if epoch % config.checkpoint_every == 0:
            self._save()
        if config.incremental.on:
            skill = config.incremental.skill_at(epoch - 1, config.skills)
            self._progress.heading = f"skill {skill + 1} of {config.skills}"
        self._progress.epoch(row)
        self._listeners.tell("on_epoch", dict(row))
        if self._comm.any(self._listeners.fault is not None or stop_requested()):
            self._stop()

    def _write(self, row: Metrics) -> None:
        if self._writer is not None:
            self._writer.write(row)

    def _check_learned(self) -> None:
        """Refuses undeclared metrics of the last updates, once for each set of names."""
        totals = self._trainer.log.totals[-1:]
        if totals and totals[0].keys() != self._learned:
            self._learned = set(totals[0])
            self._refuse_undeclared(EpochLog(totals=totals).averages())

    def _refuse_undeclared(self, names: Iterable[str]) -> None:
        if unknown := sorted({*names} - self._metrics.keys()):
            raise UsageError(
                f"metrics: expected names that settings declare, got {', '.join(unknown)}\n"
                "add each to `metrics` of the settings of its reward or agent, with its meaning"
            )

    def _opened_writer(self, after: int | None) -> MetricsWriter | None:
        if not self._comm.is_root:
            return None
        return MetricsWriter(
            self._directory.path,
            resume_after=after,
            warn=self._directory.disk_warning,
            metrics=self._metrics,
        )

    def _count_seconds(self) -> float:
        """Returns the seconds since the launch, those before a resume included."""
        self._trainer.counters.wall_s = self._launched_before + since_launch()
        return self._trainer.counters.wall_s

    def _save(self) -> None:
        trainer = self._trainer
        self._count_seconds()
        number = trainer.counters.epoch // self._config.checkpoint_every
        due = number > 0 and number % COMPACT_EVERY == 0
        compact = due or self._forgets or trainer.replay.shrunk or self._checkpoints.crowded
        self._note_losses()
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
            self._forgets = False  # this checkpoint holds nothing of the earlier replay
            self._saved_cycle, self._unsaved_epochs = trainer.counters.cycle, 0
            self._listeners.tell("on_save", self._checkpoints.newest)  # known on the root alone

    def _meta(self, best: float | None) -> dict[str, Any]:
        kept = {"best_success_rate": best, BEFORE: self._before}
        return self._trainer.meta() | kept | ({LOSSES: self._losses} if self._losses else {})

    def _note_losses(self) -> None:
        """Takes over which actors were lost; a collective call."""
        actors = self._ranks.actors
        self._losses = [*self._losses, *(actors.take_losses() if actors else [])]

    def _make_sure_it_is_saved(self) -> None:
        """Saves the present state if necessary; `Checkpoints.save` raises at a third failure."""
        cycle, pause = self._trainer.counters.cycle, 0.0
        while self._saved_cycle != cycle:
            time.sleep(pause)
            self._save()
            pause = _PAUSE_SECONDS

    @longer_timeout()
    def _restore(self) -> bool:
        """Loads the newest intact checkpoint; returns whether there is one."""
        trainer = self._trainer
        workers = {worker: _worker_name(worker) for worker in trainer.replay.shards}
        restored = self._checkpoints.restore(
            sorted(workers.values()), trainer.expected(), replay=not self._forgets
        )
        if restored is None:
            return False
        try:
            trainer.load(restored.arrays, restored.meta)
            if self._forgets:
                if trainer.replay.demonstrations and not self._command.demonstrations:
                    again = "--demonstrations reads them again"
                    self._progress.banner([f"demonstrations are dropped with replay; {again}"])
                trainer.forget()
            else:
                trainer.load_workers(
                    {worker: restored.shards[name] for worker, name in workers.items()}
                )
            self._best = success_rate(restored.meta.get("best_success_rate"))
            self._losses = restored.meta.get(LOSSES, [])
        except ValueError as error:
            raise UsageError(
                f"{self._directory.path}: the checkpoint of epoch {restored.epoch} does not fit "
                f"config.json\n{error}"
            ) from error
        self._saved_cycle = -1 if self._forgets else trainer.counters.cycle
        self._row, self._unsaved_epochs = {}, 0
        self._worlds.resume()
        self._between.resume()
        return True

    def _roll_back(self, fault: NumbersFault) -> None:
        """Goes back to the newest checkpoint, once in a run, with smaller steps and other draws."""
        trainer = self._trainer
        self._directory.write_evidence(fault.evidence)
        elapsed, best = trainer.counters.elapsed_s, self._best
        if trainer.update.step_scale != 1.0 or not self._restore():
            raise fault
        self._best = best  # its weights are still in checkpoints/best
        trainer.counters.elapsed_s = elapsed
        trainer.counters.cycle += OTHER_CYCLES
        trainer.update.scale_steps(SLOWER)
        trainer.replay.mark_saved()
        self._progress.go_back(trainer.counters.epoch)
        self._writer = self._opened_writer(trainer.counters.epoch)
        if self._comm.is_root:
            _LOGGER.warning(
                "%s\nback to the checkpoint of epoch %d, continuing with %g of the step size "
                "and other random numbers; a second such fault ends the run",
                *(fault, trainer.counters.epoch, SLOWER),
            )

    def _has_to_finish(self) -> bool:
        """Whether a stop within this epoch, which cannot be saved, would lose earlier epochs."""
        if self._config.collect.steps is None or not self._unsaved_epochs:
            return False
        if not self._finishes_first and self._comm.is_root:
            number = self._trainer.counters.epoch + 1
            _LOGGER.warning("to stop, epoch %d is finished first: then it can be saved", number)
        self._finishes_first = True
        return True

    def _stop(self) -> NoReturn:
        self._progress.stop()
        counters, done = self._trainer.counters, "stopped and saved"
        if self._config.collect.steps and self._trainer.log.cycles:
            done = f"stopped in epoch {counters.epoch + 1}, which will be repeated,"
        else:
            self._make_sure_it_is_saved()
        text = f"{done} after {counters.env_steps} steps; to resume:\n{self._resuming}"
        fault = self._listeners.fault
        if fault is not None:
            fault.add_note(f"a callback raised this; {text}")
            error_line(fault)  # logs the traceback
            raise CallbackFailed(fault)
        raise Stopped(text)

    @ending_at_once()
    def _summarize(self) -> None:
        """Compares the agent with simple policies, writes summary.json, and names next commands."""
        trainer, progress, path = self._trainer, self._progress, self._directory.path
        self._worlds.end_run()
        cut = trainer.counters.epoch < self._config.epochs
        ended = f"ended by --max-minutes {self._config.max_minutes:g}: "
        progress.banner([ended + last_line(self._config, trainer.counters)] * cut)
        progress.banner(["comparing with simple policies on the same episodes ..."])
        compared = trainer.compare() or compare(*trainer.final_policy())
        self._note_losses()
        counters = trainer.counters
        row = self._row or read_metrics(path, counters.epoch)
        self._directory.write_summary(
            {
                "metrics": {name: row[name] for name in self._metrics if name in row},
                "evaluation": compared.policies,
                "episodes": compared.number,
                "wall_s": self._count_seconds(),
                "training_s": counters.elapsed_s,
                "env_steps": counters.env_steps,
                "updates": counters.updates,
                "epochs": counters.epoch,
                "ranks": self._ranks.size,
                LOSSES: self._losses,
            }
        )
        shown = without_unpaid(compared.policies, self._config)
        progress.policies(shown, f"{self._config.env_id}, {compared.number} {compared.what}")
        progress.banner([*shortfalls(self._config, row), *verdict(progress.key_metrics, compared)])
        if self._config.updates and not counters.updates:
            first = self._config.collect.learns_after
            text = f"nothing was learned in {counters.env_steps} steps: no update was made"
            progress.banner([f"{text}, learning begins after {first} (--help collect)"])
        place, python = shlex.quote(str(path)), shlex.quote(sys.executable)
        play = f"music-tf play {place}{allowing(self._command)}"
        if is_local(self._config.env_id):
            play = f"music_tf.load_run({str(path)!r}).play(), in this process"
        progress.banner(
            [
                *[f"go on:  {self._going_on()}"] * (cut or not self._config.incremental.on),
                f"run directory: {path}",
                f"watch:  {python} -m tensorboard.main --logdir {place} --host localhost",
                f"play:   {play}",
            ]
        )


def _worker_name(worker: int) -> str:
    return f"worker_{worker:04d}"
