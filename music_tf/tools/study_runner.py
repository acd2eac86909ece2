"""Trains the missing runs of a study, several side by side, and stores what they measured."""

import collections
import json
import math
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from music_tf.errors import (
    EXIT_DONE,
    EXIT_ENVIRONMENT,
    EXIT_STOPPED,
    EnvironmentFault,
    MusicError,
    UsageError,
)
from music_tf.files import read_json, replace_file
from music_tf.process.children import run_command
from music_tf.process.machine import available_cores
from music_tf.reading.stored import CONFIG_NAME, runs_root, stored_start
from music_tf.storage.lock import RunLock, refuse_if_in_use
from music_tf.storage.metrics import CSV_NAME, EVALUATIONS_NAME, JUDGED
from music_tf.storage.provenance import commit, processor
from music_tf.storage.results import ADAPTATION, BEFORE, FINAL, WORLDS, header, read_result
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.storage.warm_start import taken_before
from music_tf.storage.worlds import read_worlds
from music_tf.tools.curves import LEADING
from music_tf.tools.study import StudyRun, load_study, runs_of
from music_tf.tools.subprocesses import MUSIC_TF, Subprocesses, last_lines

WAITING, RUNNING, DONE = "waiting", "running", "done"
STOPPED, FAILED, BLOCKED = "stopped", "failed", "not run"
BUDGETS = "budgets.json"
"""File with the epochs and minutes that each condition of a reported study began with."""
_PACKAGES = ("tensorflow", "mujoco", "gymnasium-robotics")
_CHECKOUT = Path(__file__).resolve().parents[2]
_CODE = ("music_tf", "experiments", ":(exclude)experiments/results")
_LARGEST_NOTE = 1_000_000
_ALWAYS_JUDGED = ("control", "coverage", "skills")


def code_version() -> str:
    """Returns the commit that is checked out, and whether the code differs from it."""
    checked_out = commit(_CHECKOUT)
    status = ["git", "-C", str(_CHECKOUT), "status", "--porcelain", "--", *_CODE]
    changes = run_command(status, seconds=60.0)
    if checked_out is None or not changes.ok:
        return "commit unknown"
    return f"commit {checked_out}{' with uncommitted changes' if changes.output.strip() else ''}"


def store(run: StudyRun, results: Path) -> None:
    directory = run.directory
    try:
        summary = json.loads((directory / SUMMARY_NAME).read_bytes())
        metrics = (directory / CSV_NAME).read_text(encoding="utf-8")
        versions = json.loads((directory / CONFIG_NAME).read_bytes())["versions"]
        judged = json.loads((directory / EVALUATION_NAME).read_bytes())
        if ADAPTATION in judged:
            details = {ADAPTATION: judged["policies"]}
        else:
            details = {name: judged[name] for name in _ALWAYS_JUDGED}
            details |= {name: judged[name] for name in JUDGED if name in judged}
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{directory}: the run left no complete record ({error})") from error
    if summary.get("epochs", 0) > run.epochs:
        raise EnvironmentFault(
            f"{directory}: was trained for {summary['epochs']} epochs, the study has {run.epochs}\n"
            "remove the directory to train it again"
        )
    codes, seconds = zip(*_jobs_of(run), strict=True)
    times: dict[str, Any] = {"wall_s": round(math.fsum(filter(None, seconds)), 1)}
    if None in seconds:
        times["wall_s_not_counted"] = "a stretch whose end was not seen"
    if before := taken_before(stored_start(directory), directory):
        times[BEFORE] = before
    details = times | {FINAL: summary["evaluation"]} | details
    if worlds := read_worlds(directory):
        details[WORLDS] = worlds
    if (between := directory / EVALUATIONS_NAME).exists():
        details["evaluations"] = between.read_text(encoding="utf-8")
    cores = available_cores()
    made_with = [
        *dict.fromkeys(codes),
        *(f"{name} {versions[name]}" for name in _PACKAGES if versions.get(name)),
        f"{cores} {'core' if cores == 1 else 'cores'} of {processor()}, one of them used",
    ]
    path = run.result(results)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        comments = header(run.command, ", ".join(made_with), details)
        replace_file(path, (comments + metrics).encode())
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error


def _jobs_of(run: StudyRun) -> list[list[Any]]:
    return list(json.loads(run.jobs_file.read_bytes())) if run.jobs_file.exists() else []


def hold_budgets(runs: Sequence[StudyRun], folder: Path) -> None:
    """Records the budget of each condition when a reported study begins; refuses another."""
    notes = folder / BUDGETS
    try:
        budgets = dict(read_json(notes, _LARGEST_NOTE)) if notes.exists() else {}
    except (OSError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"{notes}: expected budgets by condition ({error})"[:300]) from error
    for run in runs:
        budget = [run.epochs, run.minutes if math.isfinite(run.minutes) else None]
        if budgets.setdefault(run.group, budget) != budget:
            raise UsageError(
                f"{run.group}: a reported study keeps the budget that it was begun with\n"
                f"begun with [epochs, minutes] {budgets[run.group]}, the study has {budget}\n"
                f"remove {folder} and its results to start it again"
            )
    replace_file(notes, json.dumps(budgets).encode())


class StudyRunner:
    """Trains the runs of a study, and knows the state of each."""

    def __init__(
        self,
        runs: Sequence[StudyRun],
        results: Path,
        jobs: int = 1,
        trainer: Sequence[str] = MUSIC_TF,
    ) -> None:
        self.runs = runs
        self.faults: dict[str, list[str]] = {}
        self.states: dict[str, str] = {}
        for run in runs:
            path = run.result(results)
            command = read_result(path).command if path.exists() else None
            if command not in (None, run.command):
                raise UsageError(
                    f"{path}: holds the result of another command\nit has:    {command}\n"
                    f"the study: {run.command}\n"
                    "remove the file to continue that run, or to train it again"
                )
            self.states[run.name] = _unfinished_state(run) if command is None else DONE
        for run in reversed(runs):  # a missing run also needs the one that it starts from
            source = run.source
            if self.states[run.name] == DONE or source is None:
                continue
            if not (source.has_checkpoint and (source.directory / SUMMARY_NAME).exists()):
                self.states[source.name] = _unfinished_state(source)
        self._results, self._jobs, self._trainer = results, jobs, tuple(trainer)

    def work(self, minutes: float) -> None:
        missing = [run for run in self.runs if self.states[run.name] != DONE]
        going: dict[Future[str], StudyRun] = {}
        try:
            with ThreadPoolExecutor(self._jobs) as threads, Subprocesses(minutes) as processes:
                self._processes = processes
                while True:
                    while len(going) < self._jobs and (run := self._take_ready(missing, going)):
                        going[threads.submit(self._train_and_store, run)] = run
                    if not going:
                        return
                    for future in wait(going, return_when=FIRST_COMPLETED).done:
                        self._set_state(going.pop(future), future.result())
        except OSError as error:
            raise EnvironmentFault(f"{error.filename}: {error.strerror}") from error

    def _take_ready(
        self, missing: list[StudyRun], going: Mapping[Any, StudyRun]
    ) -> StudyRun | None:
        """Takes the first run whose source has ended out of `missing`, if any may start."""
        for run in [] if self._processes.over else missing[:]:
            source = run.source
            if source in missing or source in going.values():
                continue
            missing.remove(run)
            if source is None or self.states[source.name] == DONE:
                self._set_state(run, RUNNING)
                return run
            self._set_state(run, BLOCKED)
        return None

    @property
    def exit_code(self) -> int:
        states = set(self.states.values())
        if self._processes.killed or states & {STOPPED, WAITING}:
            return EXIT_STOPPED
        return EXIT_ENVIRONMENT if states & {FAILED, BLOCKED} else EXIT_DONE

    def summary(self) -> str:
        counts = collections.Counter(self.states.values())
        return ", ".join(f"{count} {state}" for state, count in counts.items())

    def _set_state(self, run: StudyRun, state: str) -> None:
        self.states[run.name] = state
        _say(f"{state}: {run.name}{_progress(run)}")

    def _words(self, run: StudyRun) -> list[str]:
        if not run.has_checkpoint:
            shutil.rmtree(run.directory, ignore_errors=True)
        return [*self._trainer, *run.train_words()]

    def _train_and_store(self, run: StudyRun) -> str:
        """Trains, evaluates and stores a run, and returns its state; called in a thread."""
        try:
            run.directory.parent.mkdir(parents=True, exist_ok=True)
            refuse_if_in_use(run.directory)
            earlier = _jobs_of(run) if run.has_checkpoint else []
            version, start = code_version(), time.monotonic()
            replace_file(run.jobs_file, json.dumps([*earlier, [version, None]]).encode())
            log = run.directory.with_suffix(".log")
            code = self._processes.run_twice(lambda: self._words(run), log)
            job = [version, time.monotonic() - start]
            replace_file(run.jobs_file, json.dumps([*earlier, job]).encode())
            if code == EXIT_DONE:
                code = self._processes.run([*self._trainer, *run.evaluate_words()], log)
            if code == EXIT_STOPPED or (code < 0 and self._processes.over):
                return STOPPED  # an evaluation is repeated at the next start
            if code == EXIT_DONE:
                if not run.result(self._results).exists():
                    store(run, self._results)
                return DONE
            ending = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
            self.faults[run.name] = [ending, *last_lines(log)]
        except MusicError as fault:
            self.faults[run.name] = str(fault).splitlines()
        return FAILED


def _unfinished_state(run: StudyRun) -> str:
    try:
        refuse_if_in_use(run.directory)
    except UsageError:
        return RUNNING  # another process trains it
    return STOPPED if run.has_checkpoint else WAITING


def _progress(run: StudyRun) -> str:
    try:
        columns = read_result(run.directory / CSV_NAME).columns
    except MusicError:
        return ""
    latest = {name: float(values[-1]) for name, values in columns.items()}
    leading = next((name for name in LEADING if math.isfinite(latest.get(name, math.nan))), "")
    value = f", {leading.partition('/')[2]} {latest[leading]:.2f}" if leading else ""
    minutes = latest["time/elapsed_s"] / 60.0
    return f", epoch {latest['epoch']:.0f}/{run.epochs}, {minutes:.1f} min{value}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def train_missing(
    file: Path, out: Path, jobs: int, minutes: float, trainer: Sequence[str] = MUSIC_TF
) -> int:
    """Trains the missing runs of a study, `jobs` in parallel, and returns the exit code."""
    # After `minutes` the runs save and stop. `trainer` takes a verb and its arguments.
    study = load_study(file)
    runs = runs_of(file.stem, study)
    folder = runs_root() / "studies" / file.stem
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = RunLock(folder)
    except OSError as error:
        raise EnvironmentFault(f"{folder}: cannot be written ({error.strerror})") from error
    except UsageError as fault:
        used, _, _ = str(fault).partition("\n")
        raise UsageError(f"{used}: another runner is at work on this study") from fault
    with lock:
        if study.role == "reported":
            hold_budgets(runs, folder)
        runner = StudyRunner(runs, out, jobs, trainer)  # locked, to see results of other runners
        _say(f"{study.question} {runner.summary()}")
        runner.work(minutes)
    for name, lines in runner.faults.items():
        for line in lines:
            _say(f"{name}: {line}")
    _say(f"{file.stem}: {runner.summary()}")
    return runner.exit_code


def show_plan(file: Path, out: Path, commands: bool) -> int:
    """Writes each run of a study with its state, or the commands that are missing."""
    runner = StudyRunner(runs_of(file.stem, load_study(file)), out)
    for run in runner.runs:
        state = runner.states[run.name]
        if not commands:
            _say(f"{state:8} {run.name}{_progress(run)}: {run.command}")
        elif state in (WAITING, STOPPED):
            _say(shlex.join(["music-tf", *run.train_words()]))
    return EXIT_DONE
