"""`music-tf study FILE`: compares conditions by training each of them with several seeds.

A study file is Python that defines STUDY. Every condition is trained on every task with every seed
of the task, unless it says on which:

    from music_tf.tools.study import Condition, Study, Task

    STUDY = Study(
        question="Does the learned mutual information matter?",
        tasks=(Task(env_id="FetchPush-v4", seeds=range(5), epochs=28),),
        conditions=(
            Condition(name="music", recipe="ddpg_music"),
            Condition(name="frozen", recipe="ddpg_music", arguments="--music.train False"),
            Condition(name="then_her", recipe="ddpg_music_finetune_her", start_from="music"),
        ),
    )

A run that has come to its end is measured by a process of its own (`evaluate --full`); then its
metrics are stored under comments that say how it came about.
"""

import contextlib
import dataclasses
import graphlib
import itertools
import json
import math
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table

from music_tf.config.command import parse_train
from music_tf.config.names import check_env_id, suggestion
from music_tf.config.stored import CONFIG_NAME, runs_root, stored_start
from music_tf.errors import (
    EXIT_DONE,
    EXIT_ENVIRONMENT,
    EXIT_STOPPED,
    EnvironmentFault,
    MusicError,
    UsageError,
)
from music_tf.process import available_cores, run_command
from music_tf.storage.checkpoint import labels
from music_tf.storage.files import replace_file
from music_tf.storage.lock import RunLock, refuse_if_in_use
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import BEFORE, FINAL, StoredResult, header, read_result
from music_tf.storage.run_directory import (
    EVALUATION_NAME,
    SUMMARY_NAME,
    commit,
    folder_name,
    processor,
)
from music_tf.storage.start import taken_before
from music_tf.tools.curves import LEADING

WAITING, RUNNING, DONE = "waiting", "running", "done"
STOPPED, FAILED, BLOCKED = "stopped", "failed", "not run"
TRAINER = (sys.executable, "-m", "music_tf")
JUDGED = ("control", "skills")
"""What `evaluate --full` adds to the evaluation that ends a run."""
_FOLLOWER = """
import os, signal, sys
from music_tf.process import die_with_parent
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
die_with_parent(signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Becomes a program that is asked to save when this process dies, and that no early SIGUSR1 ends.
A function for `subprocess` to call in the child would not be safe beside threads."""
_PACKAGES = ("tensorflow", "mujoco", "gymnasium-robotics")
_CHECKOUT = Path(__file__).resolve().parents[2]
_CODE = ("music_tf", "experiments", ":(exclude)experiments/results")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_POLL_SECONDS, _ASK_SECONDS = 0.2, 1.0
_SHOWN_LINES = 10


class _Declared:
    """Refuses fields that hold something else than what they are declared to hold."""

    def __post_init__(self) -> None:
        label = getattr(self, "name", getattr(self, "env_id", ""))
        title = f"{type(self).__name__} {label if isinstance(label, str) else ''}".strip()[:80]
        for name, kind in typing.get_type_hints(type(self)).items():
            value = getattr(self, name)
            if not _fits(value, kind):
                raise UsageError(f"{title}: {name}: expected {_EXPECTED[kind]}, got {value!r:.80}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(_Declared):
    """An environment, with its seeds and budget."""

    env_id: str
    """Gymnasium id, or `module:Id` of one's own."""
    seeds: Sequence[int]
    """A run each, for every condition."""
    epochs: int | None = None
    """Budget in epochs; unset: the recipe's."""
    minutes: float | None = None
    """Budget in minutes of training; unset: none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Condition(_Declared):
    """A recipe, and what is special about it here."""

    name: str
    """Letters, digits and `_`; names files and rows."""
    recipe: str
    """As in `music-tf recipes`."""
    arguments: str = ""
    """More of the command line of `train`."""
    tasks: Sequence[str] = ()
    """Ids of the environments it is trained on; empty: all of the study."""
    epochs: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Budget in epochs by environment, in place of the task's."""
    start_from: str = ""
    """Condition whose run of the same seed this one starts from."""
    start_task: str = ""
    """Environment of that run; empty: the same."""
    parts: str = ""
    """What is taken over from it, as in `actor,normalizer`; empty: what the recipe says."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study(_Declared):
    """A question, and the runs that answer it."""

    question: str
    tasks: Sequence[Task]
    conditions: Sequence[Condition]


_EXPECTED: Mapping[Any, str] = {
    str: "a text",
    int | None: "a whole number or None",
    float | None: "a number or None",
    Sequence[int]: "whole numbers, as in range(5) or (0, 1, 2)",
    Sequence[str]: "a tuple or list, as in ('FetchPush-v4',) with its comma",
    Sequence[Task]: "a tuple or list, as in (Task(...),) with its comma",
    Sequence[Condition]: "a tuple or list, as in (Condition(...),) with its comma",
    Mapping[str, int]: "whole numbers by environment, as in {'FetchPush-v4': 25}",
}


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; True is no number."""
    holder, inner = typing.get_origin(kind), typing.get_args(kind)
    if holder is types.UnionType:
        return any(_fits(value, one) for one in inner)
    if holder is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(one, of) for item in value.items() for one, of in zip(item, inner, strict=True)
        )
    if holder is Sequence:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        return is_list and all(_fits(one, inner[0]) for one in value)
    return isinstance(value, int | float if kind is float else kind) and value is not bool(value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a study."""

    study: str
    condition: str
    seed: int
    arguments: tuple[str, ...]
    """What stands after `train`, but for the directory and the run to start from."""
    env_id: str
    epochs: int
    """Where it ends, if its minutes last so long."""
    source: "Run | None" = None
    """The run that this one starts from."""
    parts: str = ""
    """What it takes over from there, where the recipe does not say it."""

    @property
    def name(self) -> str:
        """What the stored result is called."""
        return f"{self.condition}_{folder_name(self.env_id)}_seed{self.seed}"

    @property
    def place(self) -> Path:
        """Its directory under the root of all runs, the same on every day."""
        task = folder_name(self.env_id)
        return Path("studies") / self.study / self.condition / task / f"seed{self.seed}"

    @property
    def directory(self) -> Path:
        """Where it is trained."""
        return runs_root() / self.place

    @property
    def log(self) -> Path:
        """What it printed; beside its directory, which has to begin empty."""
        return self.directory.with_suffix(".log")

    @property
    def command(self) -> str:
        """What a reader would type, with the usual root of all runs."""
        return shlex.join(["music-tf", "train", *self.arguments, *self._start(Path("runs"))])

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to go on from; a run resumed without would lose its start."""
        return bool(labels(entry.name for entry in (self.directory / "checkpoints").glob("*")))

    def words(self) -> list[str]:
        """Returns the verb and arguments that begin this run, or go on with it."""
        begun = self.has_checkpoint  # then it has its start behind it
        start = [] if begun else self._start(runs_root())
        resume = ["--resume"] if begun else []
        return ["train", *self.arguments, *start, "--run-dir", str(self.directory), *resume]

    def result(self, results: Path) -> Path:
        """Returns where its stored result lies."""
        return results / self.study / f"{self.name}.csv"

    def _start(self, root: Path) -> list[str]:
        if self.source is None:
            return []
        parts = ["--parts", self.parts] if self.parts else []
        return ["--init-from", str(root / self.source.place), *parts]


def load_study(path: Path) -> Study:
    """Runs a study file and returns its STUDY.

    Raises:
        UsageError: There is no such file, it fails, or it defines something else.
    """
    if not path.is_file():
        beside = [str(other) for other in sorted(path.parent.glob("*.py"))]
        raise UsageError(f"FILE: no file {str(path)[:200]!r}{suggestion(str(path), beside)}")
    try:
        study = runpy.run_path(str(path)).get("STUDY")
    except UsageError:  # of a field: it says all
        raise
    except Exception as error:  # whatever the user's file raises
        found = re.search(r"(Task|Condition|Study)\.__init__\(\) got .* '(\w+)'", str(error))
        fields = typing.get_type_hints(globals()[found[1]]) if found else {}
        hint = suggestion(found[2], fields) if found else ""
        raise UsageError(f"{path}: {type(error).__name__}: {error}{hint}") from error
    if not isinstance(study, Study):
        raise UsageError(f"{path}: expected it to define STUDY, a Study, got {study!r:.80}")
    return study


def runs_of(name: str, study: Study) -> list[Run]:
    """Returns the runs of a study, each behind the one that it starts from.

    All conditions of the first seeds come first, so that a study cut short has compared like with
    like.

    Raises:
        UsageError: Something in the study is unknown, missing, or does not fit.
    """
    tasks = _tasks(study)
    conditions = _conditions(study, tasks)
    runs: dict[tuple[str, str, int], Run] = {}

    def is_on(condition: Condition, env_id: str) -> bool:
        return env_id in (condition.tasks or tasks)

    def add(condition: Condition, env_id: str, seed: int) -> Run:
        key = (condition.name, env_id, seed)
        if key in runs:
            return runs[key]
        source = None
        if condition.start_from:
            above, task = conditions[condition.start_from], condition.start_task or env_id
            if not is_on(above, task) or seed not in tasks[task].seeds:
                raise UsageError(
                    f"{condition.name}: start_from needs a run of {above.name} on {task} "
                    f"with seed {seed}, and the study has none"
                )
            source = add(above, task, seed)
        runs[key] = _run(name, condition, tasks[env_id], seed, source)
        return runs[key]

    most = max(len(task.seeds) for task in tasks.values())
    for number, task, condition in itertools.product(range(most), tasks.values(), study.conditions):
        if number < len(task.seeds) and is_on(condition, task.env_id):
            add(condition, task.env_id, task.seeds[number])
    return list(runs.values())


def _tasks(study: Study) -> dict[str, Task]:
    """Returns the tasks of a study by their checked ids."""
    for task in study.tasks:
        if len(set(task.seeds)) != len(task.seeds) or not task.seeds:
            raise UsageError(f"{task.env_id}: expected seeds, each once, got {list(task.seeds)}")
    tasks = {check_env_id(task.env_id): task for task in study.tasks}
    _refuse_twice("task", [task.env_id for task in study.tasks])
    return tasks


def _conditions(study: Study, tasks: Mapping[str, Task]) -> dict[str, Condition]:
    """Returns the conditions of a study by name; what they name is there."""
    conditions = {condition.name: condition for condition in study.conditions}
    _refuse_twice("condition", [condition.name for condition in study.conditions])
    starts = {name: [one.start_from] for name, one in conditions.items() if one.start_from}
    for name, condition in conditions.items():
        if not _PLAIN.fullmatch(name):
            raise UsageError(
                f"condition: expected a name of letters, digits and _, got {name[:80]!r}"
            )
        on = [*condition.tasks, *condition.epochs, *filter(None, [condition.start_task])]
        for kind, named, known in (
            ("no task", on, tasks),
            ("start_from names no condition,", starts.get(name, []), conditions),
        ):
            for one in set(named).difference(known):
                raise UsageError(
                    f"{name}: {kind} {one[:80]!r} in this study{suggestion(one, known)}"
                )
    try:
        graphlib.TopologicalSorter(starts).prepare()
    except graphlib.CycleError as error:
        circle = " from ".join(reversed(error.args[1]))
        raise UsageError(f"start_from leads back to where it began: {circle}") from error
    return conditions


def _refuse_twice(kind: str, names: Sequence[str]) -> None:
    """Refuses a study without a task or a condition, or one that stands there twice."""
    if not names:
        raise UsageError("STUDY: expected at least one task and one condition")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{kind}: {name} stands there twice")


def _run(study: str, condition: Condition, task: Task, seed: int, source: Run | None) -> Run:
    """Returns a run, after reading its command line as `train` would."""
    epochs = condition.epochs.get(task.env_id, task.epochs)
    try:
        arguments = (
            *(condition.recipe, "--env-id", task.env_id, "--seed", str(seed)),
            *(("--epochs", str(epochs)) if epochs is not None else ()),
            *(("--max-minutes", f"{task.minutes:g}") if task.minutes is not None else ()),
            *shlex.split(condition.arguments),
            *("--threads", "1"),
        )
        start = () if source is None else ("--init-from", str(runs_root() / source.place))
        parts = ("--parts", condition.parts) if source and condition.parts else ()
        epochs = parse_train([*arguments, *start, *parts]).config.epochs
    except ValueError as error:  # of shlex
        raise UsageError(
            f"Condition {condition.name}: arguments: expected options in one text with its quotes "
            f"closed, as in '--music.gain 500', got {condition.arguments!r:.80}"
        ) from error
    except MusicError as fault:
        raise UsageError(f"{condition.name} on {task.env_id}: {fault}") from fault
    return Run(
        study=study,
        condition=condition.name,
        seed=seed,
        arguments=arguments,
        env_id=task.env_id,
        epochs=epochs,
        source=source,
        parts=condition.parts,
    )


def code_version() -> str:
    """Returns the commit that is checked out, and whether the code differs from it."""
    found = commit(_CHECKOUT)
    status = ["git", "-C", str(_CHECKOUT), "status", "--porcelain", "--", *_CODE]
    changes = run_command(status, seconds=60.0)
    if found is None or not changes.ok:
        return "commit unknown"
    return f"commit {found}{' with uncommitted changes' if changes.output.strip() else ''}"


class _Stretches:
    """Notes beside a run: the code of each stretch of it, and its wall time where the end was seen.

    A stretch ends with the run, or where the run is stopped or dies; the next one resumes it.
    """

    def __init__(self, run: Run) -> None:
        self._path = run.directory.with_suffix(".sessions.json")
        try:
            self.all: list[list[Any]] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            self.all = []

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)
        self.all = []

    @contextlib.contextmanager
    def another(self) -> Iterator[None]:
        start = time.monotonic()
        self.all.append([code_version(), None])
        self._write()
        yield
        self.all[-1][1] = time.monotonic() - start
        self._write()

    def _write(self) -> None:
        replace_file(self._path, json.dumps(self.all).encode())


def store(run: Run, results: Path) -> None:
    """Writes the result of a run that has ended and was judged.

    Raises:
        MusicError: The run left no whole record, it went further than the study says, or the file
            cannot be written.
    """
    directory = run.directory
    try:
        summary = json.loads((directory / SUMMARY_NAME).read_bytes())
        metrics = (directory / CSV_NAME).read_text(encoding="utf-8")
        versions = json.loads((directory / CONFIG_NAME).read_bytes())["versions"]
        judged = json.loads((directory / EVALUATION_NAME).read_bytes())
        judgement = {name: judged[name] for name in JUDGED}
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentFault(f"{directory}: the run left no whole record ({error})") from error
    if summary.get("epochs", 0) > run.epochs:
        raise EnvironmentFault(
            f"{directory}: was trained for {summary['epochs']} epochs, the study has {run.epochs}\n"
            "remove the directory to train it anew"
        )
    stretches = _Stretches(run).all
    seconds = [wall_s for _, wall_s in stretches]
    details: dict[str, Any] = {"wall_s": round(math.fsum(filter(None, seconds)), 1)}
    if None in seconds:
        details["wall_s_not_counted"] = "a stretch whose end was not seen"
    if run.source is not None:
        details[BEFORE] = taken_before(stored_start(directory), directory)
    details |= {FINAL: summary["evaluation"]} | judgement
    made_with = [
        *dict.fromkeys(code for code, _ in stretches),
        *(f"{name} {versions[name]}" for name in _PACKAGES if versions.get(name)),
        f"{available_cores()} cores of {processor()}, one of them used",
    ]
    comments = header(run.command, ", ".join(made_with), details)
    path = run.result(results)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (comments + metrics).encode())
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error


def stored(run: Run, results: Path) -> StoredResult | None:
    """Returns the result of a run, or None where there is none.

    Raises:
        UsageError: The file holds the result of another command.
    """
    path = run.result(results)
    if not path.exists():
        return None
    result = read_result(path)
    if result.command != run.command:
        raise UsageError(
            f"{path}: holds the result of another command\nit has:    {result.command}\n"
            f"the study: {run.command}\nremove the file to go on with that run, or to train it anew"
        )
    return result


class Requests:
    """Ctrl-C, SIGTERM, SIGUSR1 and the end of the time allowed: each asks to save and stop."""

    def __init__(self, minutes: float) -> None:
        """Installs the handlers, and lets the time begin."""
        self._received: list[int] = []
        self._deadline = time.monotonic() + 60.0 * minutes
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def to_stop(self) -> bool:
        """Whether it is time to save and stop."""
        return bool(self._received) or time.monotonic() >= self._deadline

    def to_end_at_once(self) -> bool:
        """Whether somebody pressed Ctrl-C a second time."""
        return self._received.count(signal.SIGINT) > 1

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received.append(number)


class _Child(NamedTuple):
    """A run that goes on, or is being judged."""

    process: "subprocess.Popen[bytes]"
    stop: signal.Signals
    """What asks it to stop: training saves first, an evaluation has nothing to save."""


class Pool:
    """The runs of a study, and what has become of each."""

    def __init__(
        self, runs: Sequence[Run], results: Path, jobs: int = 1, trainer: Sequence[str] = TRAINER
    ) -> None:
        """Looks up what is done already.

        Args:
            runs: Each behind the one that it starts from.
            results: Where stored results go.
            jobs: How many runs go on at once, at least 1.
            trainer: The words of a command that takes a verb and its arguments.

        Raises:
            UsageError: A stored result is that of another command.
        """
        self.runs = runs
        self.faults: dict[str, list[str]] = {}
        self.states = {run.name: DONE if stored(run, results) else _begun(run) for run in runs}
        for run in reversed(runs):  # behind a missing run, what it starts from is needed too
            source = run.source
            if self.states[run.name] == DONE or source is None:
                continue
            if not (source.has_checkpoint and (source.directory / SUMMARY_NAME).exists()):
                self.states[source.name] = _begun(source)
        self._results, self._jobs, self._trainer = results, jobs, tuple(trainer)
        self._children: dict[str, _Child] = {}
        self._asked = 0.0

    def work(self, requests: Requests, show: Callable[[], None]) -> None:
        """Runs what is missing, until nothing is left or a request to stop has been met.

        Args:
            requests: When to stop.
            show: Called several times a second.

        Raises:
            EnvironmentFault: Notes or logs cannot be written; what goes on saves and stops.
        """
        missing = [run for run in self.runs if self.states[run.name] != DONE]
        needs = {run: {run.source} & set(missing) if run.source else set() for run in missing}
        order = graphlib.TopologicalSorter(needs)
        order.prepare()
        ready: list[Run] = []
        going: dict[Future[str], Run] = {}
        # What a thread starts inherits that SIGUSR1 has to wait
        mask = (signal.SIG_BLOCK, [signal.SIGUSR1])
        with (
            ThreadPoolExecutor(
                self._jobs, initializer=signal.pthread_sigmask, initargs=mask
            ) as threads,
            self._stopped_by_a_fault(),
        ):
            while True:
                ready = sorted([*ready, *order.get_ready()], key=missing.index)  # first seeds first
                while ready and len(going) < self._jobs and not requests.to_stop():
                    run = ready.pop(0)
                    self.states[run.name] = RUNNING
                    going[threads.submit(self._take_to_its_end, run, requests)] = run
                show()
                if not going:
                    return
                for future in wait(going, _POLL_SECONDS, FIRST_COMPLETED).done:
                    run = going.pop(future)
                    self.states[run.name] = future.result()
                    if self.states[run.name] == DONE:
                        order.done(run)
                    elif not requests.to_stop():
                        self._block(run)
                self._ask_to_stop(requests)

    @contextlib.contextmanager
    def _stopped_by_a_fault(self) -> Iterator[None]:
        """Lets what goes on save, where this process cannot go on."""
        try:
            yield
        except OSError as error:
            raise EnvironmentFault(f"{error.filename}: {error.strerror}") from error
        finally:
            for child in list(self._children.values()):
                child.process.terminate()

    def count(self, state: str) -> int:
        """Returns how many runs are in a state."""
        return list(self.states.values()).count(state)

    def summary(self) -> str:
        """Returns how many runs are in each state, in words."""
        return ", ".join(f"{self.count(one)} {one}" for one in dict.fromkeys(self.states.values()))

    def _take_to_its_end(self, run: Run, requests: Requests) -> str:
        """Trains a run, judges and stores it, and returns its state; a thread of its own."""
        try:
            run.directory.parent.mkdir(parents=True, exist_ok=True)
            refuse_if_in_use(run.directory)
            stretches = _Stretches(run)
            if not run.has_checkpoint:
                shutil.rmtree(run.directory, ignore_errors=True)
                stretches.forget()
            with stretches.another():
                code = self._wait_for(run, run.words(), signal.SIGUSR1)
            if code == EXIT_DONE:
                words = ["evaluate", str(run.directory), "--env-id", run.env_id, "--full"]
                code = self._wait_for(run, words, signal.SIGTERM)
            if code == EXIT_STOPPED or (code < 0 and requests.to_stop()):
                return STOPPED  # the same end of training is judged next time
            if code != EXIT_DONE:
                ending = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
                printed = run.log.read_text(encoding="utf-8", errors="replace").splitlines()
                said = [line.rstrip()[:200] for line in printed if line.strip()]
                self.faults[run.name] = [ending, *said[-_SHOWN_LINES:]]
                return FAILED
            if not run.result(self._results).exists():
                store(run, self._results)
        except MusicError as fault:
            self.faults[run.name] = str(fault).splitlines()
            return FAILED
        return DONE

    def _wait_for(self, run: Run, words: Sequence[str], stop: signal.Signals) -> int:
        """Returns the exit code of a process that writes to the log of a run."""
        with run.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _FOLLOWER, str(os.getpid()), *self._trainer, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        self._children[run.name] = _Child(process, stop)
        code = process.wait()
        del self._children[run.name]
        return code

    def _ask_to_stop(self, requests: Requests) -> None:
        """Repeats a request to stop, which a child misses before its signal handlers are there."""
        lately = time.monotonic() < self._asked + _ASK_SECONDS
        if not requests.to_stop() or (lately and not requests.to_end_at_once()):
            return
        self._asked = time.monotonic()
        for child in list(self._children.values()):
            child.process.send_signal(signal.SIGKILL if requests.to_end_at_once() else child.stop)

    def _block(self, source: Run) -> None:
        """Gives up all that starts from a run."""
        for run in self.runs:
            if run.source == source:
                self.states[run.name] = BLOCKED
                self._block(run)


def _begun(run: Run) -> str:
    """Returns the state of a run that has no result yet."""
    try:
        refuse_if_in_use(run.directory)
    except UsageError:
        return RUNNING  # by another runner, or by hand
    return STOPPED if run.has_checkpoint else WAITING


@contextlib.contextmanager
def board(pool: Pool, console: Console) -> Iterator[Callable[[], None]]:
    """Shows a pool while it works: a table on a terminal, else a line for each change.

    Yields:
        What tells the changes since it was called last.
    """
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
                _say(console, f"{state}: {run.name}{_progress(run, state)}")

    yield tell


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def table(pool: Pool) -> Table:
    """Returns a row for each condition on each environment, with its runs that go on."""
    found = Table(title=f"{pool.runs[0].study}: {pool.summary()}", title_justify="left")
    for column in ("condition", "environment", "done", "seeds that go on or failed"):
        found.add_column(column)
    rows: dict[tuple[str, str], list[Run]] = {}
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


def _progress(run: Run, state: str) -> str:
    """Returns how far a run has come that goes on, or ended."""
    try:
        columns = read_result(run.directory / CSV_NAME).columns
    except MusicError:
        return ""
    if state not in (RUNNING, DONE, FAILED):
        return ""
    latest = {name: float(values[-1]) for name, values in columns.items()}
    leading = next((name for name in LEADING if math.isfinite(latest.get(name, math.nan))), "")
    value = f", {leading.partition('/')[2]} {latest[leading]:.2f}" if leading else ""
    minutes = latest["time/elapsed_s"] / 60.0
    return f", epoch {latest['epoch']:.0f}/{run.epochs}, {minutes:.1f} min{value}"


def train_missing(
    file: Path, out: Path, jobs: int, minutes: float, trainer: Sequence[str] = TRAINER
) -> int:
    """Trains what a study lacks, and returns the exit code.

    Args:
        file: Defines the study.
        out: Folder of the stored results.
        jobs: Runs side by side.
        minutes: After which the runs save and stop.
        trainer: The words of a command that takes a verb and its arguments.

    Raises:
        UsageError: The study is wrong; nothing was started.
        EnvironmentFault: The folder of the runs cannot be written.
    """
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
        pool = Pool(runs, out, jobs, trainer)  # what another runner did counts
        _say(console, f"{study.question} {pool.summary()}")
        requests = Requests(minutes)
        with board(pool, console) as show:
            pool.work(requests, show)
    for run in runs:
        for line in pool.faults.get(run.name, ()):
            _say(console, f"{run.name}: {line}")
    _say(console, f"{file.stem}: {pool.summary()}")
    if requests.to_end_at_once() or pool.count(STOPPED) or pool.count(WAITING):
        return EXIT_STOPPED
    return EXIT_ENVIRONMENT if pool.count(FAILED) or pool.count(BLOCKED) else EXIT_DONE


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
