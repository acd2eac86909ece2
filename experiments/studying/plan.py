"""What a study file says, and the runs that follow from it.

A study file is Python that defines STUDY; every condition is trained on every task, with every
seed of the task, unless it says on which:

    STUDY = Study(
        question="Does the learned mutual information matter?",
        tasks=(Task(env_id="FetchPush-v4", seeds=range(5), epochs=28),),
        conditions=(
            Condition(name="music", recipe="ddpg_music"),
            Condition(name="frozen", recipe="ddpg_music", arguments="--music.train False"),
            Condition(name="then_her", recipe="ddpg_music_finetune_her", start_from="music"),
        ),
    )
"""

import dataclasses
import re
import runpy
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from music_tf.config.command import parse_train
from music_tf.config.environments import check_env_id
from music_tf.config.names import suggestion
from music_tf.errors import MusicError, UsageError
from music_tf.storage.runs_root import folder_name, runs_root
from studying.fields import (
    COMMAND_LINE,
    EPOCHS,
    NUMBER_OR_NONE,
    SEEDS,
    TEXT,
    WHOLE_OR_NONE,
    check,
    several,
)

_PLAIN = re.compile(r"[A-Za-z0-9_]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """An environment, with its seeds and budget."""

    env_id: str
    """Gymnasium id, or `module:Id` of one's own."""
    seeds: Sequence[int]
    """A run each, for every condition."""
    epochs: int | None = None
    """Budget in epochs; unset: the recipe's."""
    minutes: float | None = None
    """Budget in minutes of training; unset: none."""

    def __post_init__(self) -> None:
        """Refuses what a field cannot hold."""
        check(self, env_id=TEXT, seeds=SEEDS, epochs=WHOLE_OR_NONE, minutes=NUMBER_OR_NONE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Condition:
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

    def __post_init__(self) -> None:
        """Refuses what a field cannot hold."""
        check(
            self,
            name=TEXT,
            recipe=TEXT,
            arguments=COMMAND_LINE,
            tasks=several(str, "'FetchPush-v4'"),
            epochs=EPOCHS,
            start_from=TEXT,
            start_task=TEXT,
            parts=TEXT,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A question, and the runs that answer it."""

    question: str
    tasks: Sequence[Task]
    conditions: Sequence[Condition]

    def __post_init__(self) -> None:
        """Refuses what a field cannot hold."""
        check(
            self,
            question=TEXT,
            tasks=several(Task, "Task(...)"),
            conditions=several(Condition, "Condition(...)"),
        )


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

    def words(self) -> list[str]:
        """Returns the verb and arguments that begin this run anew."""
        start = self._start(runs_root())
        return ["train", *self.arguments, *start, "--run-dir", str(self.directory)]

    def words_to_resume(self) -> list[str]:
        """Returns the verb and arguments that go on with it: it has its start behind it."""
        return ["train", *self.arguments, "--run-dir", str(self.directory), "--resume"]

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
        raise UsageError(f"STUDY: no file {str(path)[:200]!r}{suggestion(str(path), beside)}")
    try:
        study = runpy.run_path(str(path)).get("STUDY")
    except UsageError:  # of a field: it says all
        raise
    except Exception as error:  # whatever the user's file raises
        raise UsageError(f"{path}: {type(error).__name__}: {error}{_field_hint(error)}") from error
    if not isinstance(study, Study):
        raise UsageError(f"{path}: expected it to define STUDY, a Study, got {study!r:.80}")
    return study


def runs_of(name: str, study: Study) -> list[Run]:
    """Returns the runs of a study: all conditions of the first seeds, then of the next ones.

    A run stands behind the one that it starts from.

    Raises:
        UsageError: Something in the study is unknown, missing, or does not fit.
    """
    conditions = _by_name(study)
    tasks = _by_id(study)
    for condition in study.conditions:
        _check(condition, conditions, tasks)
    runs: dict[tuple[str, str, int], Run] = {}

    def add(condition: Condition, env_id: str, seed: int) -> Run:
        key = (condition.name, env_id, seed)
        if key not in runs:
            source = None
            if condition.start_from:
                above, task = conditions[condition.start_from], condition.start_task or env_id
                if not _is_on(above, task, tasks) or seed not in tasks[task].seeds:
                    raise UsageError(
                        f"{condition.name}: start_from needs a run of {above.name} on {task} "
                        f"with seed {seed}, and the study has none"
                    )
                source = add(above, task, seed)
            runs[key] = _run(name, condition, tasks[env_id], seed, source)
        return runs[key]

    for condition, env_id, seed in _in_order(study, tasks):
        add(condition, env_id, seed)
    return list(runs.values())


def _in_order(study: Study, tasks: Mapping[str, Task]) -> Iterator[tuple[Condition, str, int]]:
    """Yields first seeds first, so that a study cut short has compared like with like."""
    for number in range(max((len(task.seeds) for task in study.tasks), default=0)):
        for env_id, task in tasks.items():
            for condition in study.conditions:
                if number < len(task.seeds) and _is_on(condition, env_id, tasks):
                    yield condition, env_id, task.seeds[number]


def _by_name(study: Study) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for condition in study.conditions:
        if not _PLAIN.fullmatch(condition.name):
            raise UsageError(
                f"condition: expected a name of letters, digits and _, got {condition.name[:80]!r}"
            )
        if condition.name in conditions:
            raise UsageError(f"condition: the name {condition.name} stands there twice")
        conditions[condition.name] = condition
    if not conditions or not study.tasks:
        raise UsageError("STUDY: expected at least one task and one condition")
    return conditions


def _by_id(study: Study) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for task in study.tasks:
        if task.env_id in tasks:
            raise UsageError(f"task: {task.env_id} stands there twice")
        if len(set(task.seeds)) != len(task.seeds) or not task.seeds:
            raise UsageError(f"{task.env_id}: expected seeds, each once, got {list(task.seeds)}")
        tasks[check_env_id(task.env_id)] = task
    return tasks


def _check(
    condition: Condition, conditions: Mapping[str, Condition], tasks: Mapping[str, Task]
) -> None:
    """Refuses what a condition names and the study does not have."""
    named = [*condition.tasks, *condition.epochs, *filter(None, [condition.start_task])]
    for env_id in named:
        if env_id not in tasks:
            raise UsageError(
                f"{condition.name}: no task {env_id[:80]!r} in this study"
                + suggestion(env_id, tasks)
            )
    above = condition
    for _ in conditions:
        if not above.start_from:
            return
        if above.start_from not in conditions:
            raise UsageError(
                f"{above.name}: start_from names no condition of this study, "
                f"{above.start_from[:80]!r}{suggestion(above.start_from, conditions)}"
            )
        above = conditions[above.start_from]
    raise UsageError(f"{condition.name}: start_from leads back to where it began")


def _is_on(condition: Condition, env_id: str, tasks: Mapping[str, Task]) -> bool:
    return env_id in (condition.tasks or tasks)


def _run(study: str, condition: Condition, task: Task, seed: int, source: Run | None) -> Run:
    """Returns a run, after reading its command line as `train` would."""
    epochs = condition.epochs.get(task.env_id, task.epochs)
    arguments = (
        *(condition.recipe, "--env-id", task.env_id, "--seed", str(seed)),
        *(("--epochs", str(epochs)) if epochs is not None else ()),
        *(("--max-minutes", f"{task.minutes:g}") if task.minutes is not None else ()),
        *shlex.split(condition.arguments),
        *("--threads", "1"),
    )
    run = Run(
        study=study,
        condition=condition.name,
        seed=seed,
        arguments=arguments,
        env_id=task.env_id,
        epochs=0,
        source=source,
        parts=condition.parts,
    )
    try:
        _, *words = run.words()
        return dataclasses.replace(run, epochs=parse_train(words).config.epochs)
    except MusicError as fault:
        raise UsageError(f"{condition.name} on {task.env_id}: {fault}") from fault


def _field_hint(error: Exception) -> str:
    """Returns the nearest field to one that Task, Condition or Study does not have."""
    found = re.search(r"(Task|Condition|Study)\.__init__\(\) got .* '(\w+)'", str(error))
    if found is None:
        return ""
    kind = {"Task": Task, "Condition": Condition, "Study": Study}[found.group(1)]
    return suggestion(found.group(2), [field.name for field in dataclasses.fields(kind)])
