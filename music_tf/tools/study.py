"""`music-tf study FILE`: compares conditions by training each of them with several seeds.

FILE is Python that defines STUDY; docs/extend.md shows one.
"""

import dataclasses
import graphlib
import inspect
import itertools
import math
import re
import runpy
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from music_tf.config.key_metrics import LEVELS, MOTION
from music_tf.config.names import names_a_module, suggestion
from music_tf.errors import FROM_USERS, MusicError, UsageError, error_line
from music_tf.hints import fits, hints_of
from music_tf.reading.command import parse_train
from music_tf.reading.stored import runs_root
from music_tf.storage.checkpoint import labels
from music_tf.storage.metrics import METRICS
from music_tf.storage.run_paths import folder_name

TUNING, LOOKED_AT = range(100, 120), range(5)
"""Seeds on which settings are chosen; and seeds that were looked at meanwhile."""


class _Declared:
    """Refuses values of another type than that of their field."""

    def __post_init__(self) -> None:
        kind = type(self)
        label = getattr(self, "name", getattr(self, "env_id", ""))
        for name, hint in hints_of(kind).items():
            value = getattr(self, name)
            if not fits(value, hint):
                expected = re.sub(r"[a-z_.]+\.", "", inspect.formatannotation(hint))
                raise UsageError(
                    f"{kind.__name__} {label!s:.80}: {name}: expected {expected}, got {value!r:.80}"
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(_Declared):
    """An environment, with its seeds and budget."""

    env_id: str
    """Gymnasium id, or `module:Id` of your own."""
    seeds: Sequence[int]
    """Every condition has a run with each."""
    epochs: int | None = None
    """Budget in epochs; unset: the recipe's."""
    minutes: float | None = None
    """Budget in minutes of training; unset: none."""
    level: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Thresholds of metrics; a run has learned when one evaluation reaches all of them. The
    measures under `level/` say when that was, and what held after it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Condition(_Declared):
    """A recipe with its arguments in a study."""

    name: str
    """Letters, digits and `_`; names files and rows."""
    label: str = ""
    """Title of its row in a table; empty: its name."""
    recipe: str
    """As in `music-tf recipes`."""
    arguments: str = ""
    """More of the command line of `train`."""
    tasks: Sequence[str] = ()
    """Ids of the environments it is trained on; empty: all of the study."""
    epochs: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Budget in epochs by environment, instead of the task's."""
    seeds: Sequence[int] = ()
    """Those of its tasks that it is trained with, as of an ablation; empty: all."""
    start_from: str = ""
    """Condition whose run of the same seed this one starts from."""
    start_task: str = ""
    """Environment of that run; empty: the same."""
    parts: str = ""
    """Parts that are taken over from it, as in `actor,normalizer`; empty: those of the recipe."""
    measured: str = ""
    """More of the command line of `evaluate` at its end, as in `--zero-shot`."""

    @classmethod
    def of_rows(
        cls, *rows: tuple[str, str, str, str], measured: str = ""
    ) -> tuple["Condition", ...]:
        """Returns a condition for each row of name, label, recipe and arguments."""
        return tuple(
            cls(name=name, label=label, recipe=recipe, arguments=arguments, measured=measured)
            for name, label, recipe, arguments in rows
        )


CONTROL: Mapping[str, float] = {"eval/object_on_support_rate": 0.8, MOTION: LEVELS[MOTION][0]}
"""Thresholds for control of an object."""
LIFTED: Mapping[str, float] = {**CONTROL, "eval/object_lift_rate": 0.6}
"""The same for an object that can be lifted."""
MOST_SHOWN = 3
"""Most metrics in the table of a study, for a quick reader."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Picture(_Declared):
    """Learning curves of a study, and of the conditions in `beside`."""

    name: str
    """Name of its file in docs/images, without `.png`."""
    metrics: Sequence[str]
    """Columns of metrics.csv, with a panel for each."""
    tasks: Sequence[str] = ()
    """Ids of the environments that are drawn; empty: all of the study."""
    conditions: Sequence[str] = ()
    """Names of its own conditions that are drawn; empty: all."""
    axis: Literal["steps", "minutes"] = "steps"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study(_Declared):
    """A question, and the runs that answer it."""

    question: str
    role: Literal["tuning", "reported", "looked at"]
    """`tuning` chooses settings, on seeds 100 to 119 alone. `reported` is published: it has none of
    these seeds nor 0 to 4, and keeps the budget that it began with. `looked at` is neither: its
    runs were seen while settings were chosen."""
    tasks: Sequence[Task]
    conditions: Sequence[Condition]
    shown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Metrics of its table on a page, with their titles, at most `MOST_SHOWN`: measured at the end
    of each run, else the last value in its metrics.csv. `make results` writes all metrics of each
    seed into the README beside the stored results."""
    overview: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Metrics of a table of all conditions in the README, with their titles, if `shown` has too
    few for a comparison."""
    beside: Sequence[str] = ()
    """Conditions of other studies, shown before its own on the same tasks, as in
    `music_holds/music`."""
    compared_with: str = ""
    """Baseline condition: the README has the differences of all others from it; empty: none."""
    followed: Sequence[str] = ()
    """Columns of metrics.csv that the README shows during training."""
    pictures: Sequence[Picture] = ()
    by_hand: str = ""
    """How its runs were made, if not by `music-tf study`, which then refuses the study."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.shown) > MOST_SHOWN:
            raise UsageError(
                f"Study: shown: expected at most {MOST_SHOWN} metrics, got {len(self.shown)}; the "
                "README that `make results` writes has all"
            )
        for task in self.tasks:
            self._check_seeds(task)
            _refuse_unknown(f"Task {task.env_id}: level", task.level, METRICS)
        self._check_names()

    def _check_names(self) -> None:
        tasks = [task.env_id for task in self.tasks]
        conditions = [condition.name for condition in self.conditions]
        seeds = {str(seed) for task in self.tasks for seed in task.seeds}
        for title, names in (("tasks", tasks), ("conditions", conditions)):
            if len(set(names)) != len(names) or not names:
                raise UsageError(f"Study: {title}: expected one or more, each once, got {names}")
        for name in self.beside:
            if not name.partition("/")[2]:
                raise UsageError(
                    f"Study: beside: expected STUDY/CONDITION, as in 'music_holds/music', got "
                    f"{name!r:.80}"
                )
        bases = [*conditions, *(name.partition("/")[2] for name in self.beside)]
        _refuse_unknown("Study: compared_with", [self.compared_with], bases)
        _refuse_unknown("Study: followed", self.followed, METRICS)
        for condition in self.conditions:
            title = f"Condition {condition.name}"
            if not re.fullmatch(r"[A-Za-z0-9_]+", condition.name):
                raise UsageError(f"{title[:80]}: name: expected letters, digits and _")
            _refuse_unknown(f"{title}: tasks", [*condition.tasks, *condition.epochs], tasks)
            _refuse_unknown(f"{title}: start_task", [condition.start_task], tasks)
            _refuse_unknown(f"{title}: start_from", [condition.start_from], conditions)
            _refuse_unknown(f"{title}: seeds", map(str, condition.seeds), seeds)
        for picture in self.pictures:
            title = f"Picture {picture.name}"
            _refuse_unknown(f"{title}: metrics", picture.metrics, METRICS)
            _refuse_unknown(f"{title}: conditions", picture.conditions, conditions)
            _refuse_unknown(f"{title}: tasks", picture.tasks, tasks)
        starts = {row.name: [row.start_from] for row in self.conditions if row.start_from}
        try:
            graphlib.TopologicalSorter(starts).prepare()
        except graphlib.CycleError as error:
            circle = " from ".join(reversed(error.args[1]))
            raise UsageError(f"start_from: expected no circle, got {circle}") from error

    def _check_seeds(self, task: Task) -> None:
        seeds = set(task.seeds)
        if len(seeds) != len(task.seeds) or not seeds:
            raise UsageError(f"{task.env_id}: expected seeds, each once, got {list(task.seeds)}")
        tuning, looked_at = (f"{seeds[0]} to {seeds[-1]}" for seeds in (TUNING, LOOKED_AT))
        wrong, expected = set[int](), ""
        if self.role == "tuning":
            wrong, expected = seeds - {*TUNING}, f"{tuning}; others are for published runs"
        elif self.role == "reported":
            wrong = seeds & {*TUNING, *LOOKED_AT}
            expected = f"none of {looked_at} and {tuning}, on which settings were chosen"
        if wrong:
            raise UsageError(
                f"{task.env_id}: seeds: a study with the role {self.role!r} has {expected}; got "
                f"{sorted(wrong)}"
            )


def _refuse_unknown(title: str, names: Iterable[str], valid: Iterable[str]) -> None:
    """Refuses an unknown name, with the nearest valid one; an empty name is none."""
    for name in filter(None, names):
        if name not in valid:
            raise UsageError(f"{title}: there is no {name!r:.80}{suggestion(name, valid)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyRun:
    """One run of a study."""

    study: str
    condition: str
    env_id: str
    seed: int
    arguments: tuple[str, ...]
    """Arguments of `train`, without the run directory and the warm start."""
    source: "StudyRun | None" = None
    """The run that this one starts from."""
    parts: str = ""
    measured: tuple[str, ...] = ()
    epochs: int = 0
    minutes: float = math.inf

    @property
    def group(self) -> str:
        return f"{self.condition}_{folder_name(self.env_id)}"

    @property
    def name(self) -> str:
        return f"{self.group}_seed{self.seed}"

    @property
    def place(self) -> Path:
        """Its directory in the root of all runs, without a date."""
        task = folder_name(self.env_id)
        return Path("studies") / self.study / self.condition / task / f"seed{self.seed}"

    @property
    def directory(self) -> Path:
        """Its run directory; its log and notes are files beside it."""
        return runs_root() / self.place

    @property
    def command(self) -> str:
        return shlex.join(["music-tf", "train", *self.arguments, *self.start(Path("runs"))])

    @property
    def has_checkpoint(self) -> bool:
        return bool(labels(entry.name for entry in (self.directory / "checkpoints").glob("*")))

    def start(self, root: Path) -> list[str]:
        parts = ["--parts", self.parts] if self.parts else []
        return ["--init-from", str(root / self.source.place), *parts] if self.source else []

    def train_words(self) -> list[str]:
        more = ["--resume"] if self.has_checkpoint else self.start(runs_root())
        return ["train", *self.arguments, "--run-dir", str(self.directory), *more]

    def evaluate_words(self) -> list[str]:
        """The verb and arguments that evaluate it at its end, with consent to its own modules."""
        worlds = (
            value
            for name, value in itertools.pairwise(self.arguments)
            if name.startswith("--world.")
        )
        imports = any(map(names_a_module, (self.arguments[0], *worlds)))
        more = [*self.measured, *["--allow-import"] * imports]
        return ["evaluate", str(self.directory), "--env-id", self.env_id, "--full", *more]

    def result(self, results: Path) -> Path:
        return results / self.study / f"{self.name}.csv"

    @property
    def jobs_file(self) -> Path:
        """Code version of each job of the run, and its seconds, None if it was killed."""
        return self.directory.with_suffix(".sessions.json")


def load_study(path: Path) -> Study:
    if not path.is_file():
        beside = [str(other) for other in sorted(path.parent.glob("*.py"))]
        cure = suggestion(str(path), beside) or "\nstudies of the project: experiments/studies"
        raise UsageError(f"FILE: no file {str(path)[:200]!r}{cure}")
    try:
        study = runpy.run_path(str(path)).get("STUDY")
    except UsageError:
        raise
    except FROM_USERS as error:
        raise UsageError(f"{path}: {error_line(error)}") from error
    if not isinstance(study, Study):
        raise UsageError(f"{path}: expected it to define STUDY, a Study, got {study!r:.80}")
    return study


def runs_of(name: str, study: Study) -> list[StudyRun]:
    """Returns runs after their sources; first seeds first, so an unfinished study compares."""
    if study.by_hand:
        raise UsageError(f"{name}: its runs were not made by `music-tf study`: {study.by_hand}")
    tasks = {task.env_id: task for task in study.tasks}
    conditions = {condition.name: condition for condition in study.conditions}
    runs: dict[tuple[str, str, int], StudyRun] = {}

    def add(condition: Condition, env_id: str, seed: int) -> StudyRun:
        key = (condition.name, env_id, seed)
        if key in runs:
            return runs[key]
        source = None
        if condition.start_from:
            above, task = conditions[condition.start_from], condition.start_task or env_id
            if task not in (above.tasks or tasks) or seed not in (above.seeds or tasks[task].seeds):
                raise UsageError(
                    f"{condition.name}: start_from needs a run of {above.name} on {task} "
                    f"with seed {seed}, and the study has none"
                )
            source = add(above, task, seed)
        runs[key] = _run(name, condition, tasks[env_id], seed, source)
        return runs[key]

    for seeds in itertools.zip_longest(*(task.seeds for task in study.tasks)):
        for (env_id, seed), condition in itertools.product(
            zip(tasks, seeds, strict=True), study.conditions
        ):
            wanted = env_id in (condition.tasks or tasks) and seed in (condition.seeds or seeds)
            if seed is not None and wanted:
                add(condition, env_id, seed)
    return list(runs.values())


def _run(
    study: str, condition: Condition, task: Task, seed: int, source: StudyRun | None
) -> StudyRun:
    """Returns a run, after parsing its command line as `train` would."""
    epochs = condition.epochs.get(task.env_id, task.epochs)
    try:
        arguments = (
            *(condition.recipe, "--env-id", task.env_id, "--seed", str(seed)),
            *(("--epochs", str(epochs)) if epochs is not None else ()),
            *(("--max-minutes", f"{task.minutes:g}") if task.minutes is not None else ()),
            *shlex.split(condition.arguments),
            *("--threads", "1"),
        )
        run = StudyRun(
            study=study,
            condition=condition.name,
            env_id=task.env_id,
            seed=seed,
            arguments=arguments,
            source=source,
            parts=condition.parts,
            measured=tuple(shlex.split(condition.measured)),
        )
        config = parse_train([*arguments, *run.start(runs_root())]).config
    except ValueError as error:  # of shlex
        raise UsageError(
            f"Condition {condition.name}: arguments: expected options in one text with its quotes "
            f"closed, as in '--music.gain 500', got {condition.arguments!r:.80}"
        ) from error
    except MusicError as fault:
        raise UsageError(f"{condition.name} on {task.env_id}: {fault}") from fault
    if config.seed != seed:
        raise UsageError(
            f"Condition {condition.name}: arguments: seeds are those of the task, got --seed "
            f"{config.seed}"
        )
    return dataclasses.replace(run, epochs=config.epochs, minutes=config.max_minutes)
