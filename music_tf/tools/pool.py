"""Trains the missing runs of a study, several side by side, and stores what they measured."""

import collections
import contextlib
import graphlib
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

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
from music_tf.storage.metrics import CSV_NAME, JUDGED
from music_tf.storage.provenance import commit, processor
from music_tf.storage.results import ADAPTATION, BEFORE, FINAL, WORLDS, header, read_result
from music_tf.storage.run_directory import EVALUATION_NAME, SUMMARY_NAME
from music_tf.storage.run_paths import folder_name
from music_tf.storage.warm_start import taken_before
from music_tf.storage.worlds import read_worlds
from music_tf.tools.curves import LEADING
from music_tf.tools.study import StudyRun, load_study, runs_of

WAITING, RUNNING, DONE = "waiting", "running", "done"
STOPPED, FAILED, BLOCKED = "stopped", "failed", "not run"
BUDGETS = "budgets.json"
"""File with the epochs and minutes that each condition of a reported study began with."""
TRAINER = (sys.executable, "-m", "music_tf")
_FOLLOWER = """
import os, signal, sys
from music_tf.process.children import die_with_parent
die_with_parent(signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Program that becomes another one, which gets SIGTERM when this process dies. The `preexec_fn` of
`subprocess` is not safe with threads."""
_PACKAGES = ("tensorflow", "mujoco", "gymnasium-robotics")
_CHECKOUT = Path(__file__).resolve().parents[2]
_CODE = ("music_tf", "experiments", ":(exclude)experiments/results")
_POLL_SECONDS = 0.2
_SHOWN_LINES = 10
_LARGEST_NOTE = 1_000_000
_ALWAYS = ("control", "coverage", "skills")
"""Results of `evaluate --full` for every run that does not adapt to tasks."""


def code_version() -> str:
    """Returns the commit that is checked out, and whether the code differs from it."""
    found = commit(_CHECKOUT)
    status = ["git", "-C", str(_CHECKOUT), "status", "--porcelain", "--", *_CODE]
    changes = run_command(status, seconds=60.0)
    if found is None or not changes.ok:
        return "commit unknown"
    return f"commit {found}{' with uncommitted changes' if changes.output.strip() else ''}"


def store(run: StudyRun, results: Path) -> None:
    """Writes the result of a run that has ended and was evaluated."""
    directory = run.directory
    try:
        summary = json.loads((directory / SUMMARY_NAME).read_bytes())
        metrics = (directory / CSV_NAME).read_text(encoding="utf-8")
        versions = json.loads((directory / CONFIG_NAME).read_bytes())["versions"]
        judged = json.loads((directory / EVALUATION_NAME).read_bytes())
        adapts = ADAPTATION in judged
        judgement = (
            {ADAPTATION: judged["policies"]}
            if adapts
            else {name: judged[name] for name in (*_ALWAYS, *JUDGED) if name in {*_ALWAYS, *judged}}
        )
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{directory}: the run left no complete record ({error})") from error
    if summary.get("epochs", 0) > run.epochs:
        raise EnvironmentFault(
            f"{directory}: was trained for {summary['epochs']} epochs, the study has {run.epochs}\n"
            "remove the directory to train it again"
        )
    codes, seconds = zip(*run.stretches(), strict=True)
    details: dict[str, Any] = {"wall_s": round(math.fsum(filter(None, seconds)), 1)}
    if None in seconds:
        details["wall_s_not_counted"] = "a stretch whose end was not seen"
    if run.source is not None:
        details[BEFORE] = taken_before(stored_start(directory), directory)
    details |= {FINAL: summary["evaluation"]} | judgement
    if worlds := read_worlds(directory):
        details[WORLDS] = worlds
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


def hold_budgets(runs: Sequence[StudyRun], folder: Path) -> None:
    """Records the budget of each condition when a reported study begins; refuses another."""
    notes = folder / BUDGETS
    try:
        noted = dict(read_json(notes, _LARGEST_NOTE)) if notes.exists() else {}
    except (OSError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"{notes}: expected budgets by condition ({error})"[:300]) from error
    for run in runs:
        name = f"{run.condition}_{folder_name(run.env_id)}"
        budget = [run.epochs, run.minutes if math.isfinite(run.minutes) else None]
        if noted.setdefault(name, budget) != budget:
            raise UsageError(
                f"{name}: a reported study keeps the budget that it was begun with\n"
                f"begun with [epochs, minutes] {noted[name]}, the study has {budget}\n"
                f"remove {folder} and its results to start it again"
            )
    replace_file(notes, json.dumps(noted).encode())


def started(words: Sequence[str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Starts a command with one thread and its output in a log; it gets SIGTERM if we die."""
    return subprocess.Popen(
        [sys.executable, "-c", _FOLLOWER, str(os.getpid()), *words],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


class Pool:
    """The runs of a study, with the state of each."""

    def __init__(
        self,
        runs: Sequence[StudyRun],
        results: Path,
        jobs: int = 1,
        trainer: Sequence[str] = TRAINER,
    ) -> None:
        """Reads the state of each run; a run stands after the one that it starts from."""
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
            self.states[run.name] = self._begun(run) if command is None else DONE
        for run in reversed(runs):  # a missing run also needs the one that it starts from
            source = run.source
            if self.states[run.name] == DONE or source is None:
                continue
            if not (source.has_checkpoint and (source.directory / SUMMARY_NAME).exists()):
                self.states[source.name] = self._begun(source)
        self._results, self._jobs, self._trainer = results, jobs, tuple(trainer)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._received: list[int] = []
        self._deadline = math.inf

    def _begun(self, run: StudyRun) -> str:
        """Returns the state of a run that has no result yet."""
        try:
            refuse_if_in_use(run.directory)
        except UsageError:
            return RUNNING  # another process trains it
        return STOPPED if run.has_checkpoint else WAITING

    def work(self, minutes: float, show: Callable[[], None]) -> None:
        """Trains the missing runs, until none is left or a request to stop is fulfilled.

        Ctrl-C, SIGTERM, SIGUSR1 and the end of the minutes each ask to save and stop; a second
        Ctrl-C ends everything at once. `show` is called several times a second.
        """
        self._deadline = time.monotonic() + 60.0 * minutes
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda received, _: self._received.append(received))
        missing = [run for run in self.runs if self.states[run.name] != DONE]
        order = graphlib.TopologicalSorter({run: set(missing) & {run.source} for run in missing})
        order.prepare()
        ready: list[StudyRun] = []
        going: dict[Future[str], StudyRun] = {}
        with ThreadPoolExecutor(self._jobs) as threads:
            try:
                while True:
                    ready = sorted([*ready, *order.get_ready()], key=missing.index)
                    while ready and len(going) < self._jobs and not self.to_stop():
                        run = ready.pop(0)  # first seeds first
                        self.states[run.name] = RUNNING
                        going[threads.submit(self._train_and_store, run)] = run
                    show()
                    if not going:
                        return
                    for future in wait(going, _POLL_SECONDS, FIRST_COMPLETED).done:
                        run = going.pop(future)
                        self.states[run.name] = future.result()
                        if self.states[run.name] == DONE:
                            order.done(run)
                        elif not self.to_stop():
                            self._block(run)
                    if self.to_stop():  # repeatedly, since a starting child ignores signals
                        self._ask(signal.SIGKILL if self.to_end_at_once() else signal.SIGTERM)
            except OSError as error:
                raise EnvironmentFault(f"{error.filename}: {error.strerror}") from error
            finally:
                self._ask(signal.SIGTERM)

    def to_stop(self) -> bool:
        return bool(self._received) or time.monotonic() >= self._deadline

    def to_end_at_once(self) -> bool:
        """Whether Ctrl-C was pressed twice."""
        return self._received.count(signal.SIGINT) > 1

    def summary(self) -> str:
        """Returns the number of runs in each state as text."""
        counts = collections.Counter(self.states.values())
        return ", ".join(f"{count} {state}" for state, count in counts.items())

    def _train_and_store(self, run: StudyRun) -> str:
        """Trains, evaluates and stores a run, and returns its state; called in a thread."""
        try:
            run.directory.parent.mkdir(parents=True, exist_ok=True)
            refuse_if_in_use(run.directory)
            earlier = run.stretches()
            if not run.has_checkpoint:
                shutil.rmtree(run.directory, ignore_errors=True)
                earlier = []
            code_of_it, start = code_version(), time.monotonic()
            run.note([*earlier, [code_of_it, None]])
            code = self._wait_for(run, run.words())
            run.note([*earlier, [code_of_it, time.monotonic() - start]])
            if code == EXIT_DONE:
                code = self._wait_for(run, run.judging())
            if code == EXIT_STOPPED or (code < 0 and self.to_stop()):
                return STOPPED  # an evaluation is repeated at the next start
            if code == EXIT_DONE:
                if not run.result(self._results).exists():
                    store(run, self._results)
                return DONE
            ending = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
            log = run.directory.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
            said = [line.rstrip()[:200] for line in log.splitlines() if line.strip()]
            self.faults[run.name] = [ending, *said[-_SHOWN_LINES:]]
        except MusicError as fault:
            self.faults[run.name] = str(fault).splitlines()
        return FAILED

    def _wait_for(self, run: StudyRun, words: Sequence[str]) -> int:
        """Runs a command with its output in the log of a run; returns the exit code."""
        with run.directory.with_suffix(".log").open("ab") as log:
            process = started([*self._trainer, *words], log)
        self._children[run.name] = process
        code = process.wait()
        del self._children[run.name]
        return code

    def _ask(self, number: signal.Signals) -> None:
        for process in list(self._children.values()):
            process.send_signal(number)

    def _block(self, source: StudyRun) -> None:
        """Marks all runs that start from a failed one, directly or not."""
        for run in self.runs:
            if run.source == source:
                self.states[run.name] = BLOCKED
                self._block(run)


@contextlib.contextmanager
def board(pool: Pool, console: Console) -> Iterator[Callable[[], None]]:
    """Shows the state of a pool: a table on a terminal, else a line for each change."""
    # Yields the function that prints the changes since its last call.
    if console.is_terminal:
        with Live(get_renderable=lambda: table(pool), console=console, refresh_per_second=1):
            yield lambda: None
        return
    shown = dict(pool.states)

    def tell() -> None:
        for run in pool.runs:
            state = pool.states[run.name]
            if state != shown[run.name]:
                shown[run.name] = state
                console.out(f"{state}: {run.name}{_progress(run, state)}", highlight=False)

    yield tell


def table(pool: Pool) -> Table:
    """Returns a row for each condition on each environment, with its running runs."""
    found = Table(
        *("condition", "environment", "done", "seeds that go on or failed"),
        title=f"{pool.runs[0].study}: {pool.summary()}",
        title_justify="left",
    )
    rows: dict[tuple[str, str], list[StudyRun]] = {}
    for run in pool.runs:
        rows.setdefault((run.condition, run.env_id), []).append(run)
    for (condition, env_id), runs in rows.items():
        states = [pool.states[run.name] for run in runs]
        others = [
            f"{run.seed} {state}{_progress(run, state)}"
            for run, state in zip(runs, states, strict=True)
            if state not in (DONE, WAITING)
        ]
        done = f"{states.count(DONE)}/{len(runs)}"
        found.add_row(condition, env_id, done, "\n".join(others))
    return found


def _progress(run: StudyRun, state: str) -> str:
    """Returns epoch, minutes and the leading metric of a running or ended run."""
    if state not in (RUNNING, DONE, FAILED):
        return ""
    try:
        columns = read_result(run.directory / CSV_NAME).columns
    except MusicError:
        return ""
    latest = {name: float(values[-1]) for name, values in columns.items()}
    leading = next((name for name in LEADING if math.isfinite(latest.get(name, math.nan))), "")
    value = f", {leading.partition('/')[2]} {latest[leading]:.2f}" if leading else ""
    minutes = latest["time/elapsed_s"] / 60.0
    return f", epoch {latest['epoch']:.0f}/{run.epochs}, {minutes:.1f} min{value}"


def train_missing(
    file: Path, out: Path, jobs: int, minutes: float, trainer: Sequence[str] = TRAINER
) -> int:
    """Trains the missing runs of a study, `jobs` in parallel, and returns the exit code."""
    # After `minutes` the runs save and stop. `trainer` takes a verb and its arguments.
    study = load_study(file)
    runs = runs_of(file.stem, study)
    console = Console(file=sys.stdout)
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
        pool = Pool(runs, out, jobs, trainer)  # under the lock, to see results of other runners
        console.out(f"{study.question} {pool.summary()}", highlight=False)
        with board(pool, console) as show:
            pool.work(minutes, show)
    for run in runs:
        for line in pool.faults.get(run.name, ()):
            console.out(f"{run.name}: {line}", highlight=False)
    console.out(f"{file.stem}: {pool.summary()}", highlight=False)
    states = set(pool.states.values())
    if pool.to_end_at_once() or states & {STOPPED, WAITING}:
        return EXIT_STOPPED
    return EXIT_ENVIRONMENT if states & {FAILED, BLOCKED} else EXIT_DONE


def show_plan(file: Path, out: Path, commands: bool) -> int:
    """Writes each run of a study with its state, or the commands that are missing."""
    pool = Pool(runs_of(file.stem, load_study(file)), out)
    for run in pool.runs:
        state = pool.states[run.name]
        if not commands:
            sys.stdout.write(f"{state:8} {run.name}: {run.command}\n")
        elif state in (WAITING, STOPPED):
            sys.stdout.write(f"{shlex.join(['music-tf', *run.words()])}\n")
    return EXIT_DONE
