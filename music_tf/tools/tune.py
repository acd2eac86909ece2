"""Searches settings for an environment with Optuna, over as many processes as are started.

A trial is a run of `music-tf train` with one of the tuning seeds. Trials and their scores lie in an
SQLite file, so that any process goes on where others were stopped or killed.
"""

import dataclasses
import fcntl
import hashlib
import math
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from music_tf import recipes
from music_tf.config.fields import fields_of, show_value
from music_tf.config.names import suggestion
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import with_registered_world
from music_tf.envs.registry import check_split
from music_tf.envs.repeating import check_steps
from music_tf.errors import EXIT_DONE, EnvironmentFault, Stopped, UsageError
from music_tf.hints import hints_of
from music_tf.process.children import check_extra
from music_tf.reading.command import TrainCommand, as_typed, parse_train
from music_tf.reading.stored import runs_root
from music_tf.storage.metrics import known_to
from music_tf.storage.provenance import versions
from music_tf.storage.results import scores
from music_tf.storage.run_directory import SUMMARY_NAME
from music_tf.storage.run_paths import TRIALS, folder_name
from music_tf.tools.spaces import Method, Space
from music_tf.tools.subprocesses import MUSIC_TF, Subprocesses, last_lines

if TYPE_CHECKING:  # an extra
    import optuna

_UNPRUNED_TRIALS = 4
_ALL_ZERO = (
    "all trials so far score 0, so that none is better: give them more --epochs, or a --metric "
    "that moves earlier, such as eval/goal_moved_rate"
)
_SCORED_EVALUATIONS = 3
_MOST_FAILURES_IN_A_ROW = 3
_DIGEST_LENGTH = 8
_SET_BY_TUNE = frozenset({*hints_of(TrainCommand), "env_id", "epochs", "seed"})
"""Options of `train` that are no part of a space: tune sets them, or they are no settings."""


@dataclasses.dataclass(frozen=True)
class Search:
    """What is searched; processes with equal searches work on one study."""

    env_id: str
    recipe: str
    preset: str
    epochs: int
    settings: tuple[str, ...]
    """Those of environment and world that all runs share, as they are typed."""
    space: Space
    metrics: tuple[str, ...]
    """The first of them that a run has scores it; larger is better."""
    seeds: tuple[int, ...]
    """Trials take them one after the other."""

    @property
    def folder(self) -> Path:
        """Absolute folder of study and runs: any other search or version has another one."""
        content = f"{versions()['music_tf']} {self!r}"
        digest = hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_LENGTH]
        name = f"{folder_name(self.env_id)}_{self.recipe}_{digest}"
        return runs_root().absolute() / TRIALS / name

    @property
    def storage(self) -> Path:
        return self.folder / "study.db"

    def words(self, values: Mapping[str, Any], seed: int, folder: Path) -> list[str]:
        return [
            *self.typed(values),
            *("--seed", str(seed), "--epochs", str(self.epochs), "--run-dir", str(folder)),
        ]

    def typed(self, values: Mapping[str, Any]) -> list[str]:
        preset = [] if self.preset == recipes.DEFAULT_PRESET else ["--preset", self.preset]
        head = [self.recipe, "--env-id", self.env_id, *preset]
        return [*head, *self.settings, *as_typed(values)]

    def of_preset(self) -> dict[str, Any]:
        config = recipes.resolve(self.recipe, self.preset, self.env_id)
        return {field.name: field.value for field in fields_of(config) if field.name in self.space}

    def left_out(self) -> dict[str, Any]:
        preset = self.of_preset()
        return {
            name: preset.get(name)
            for name, dimension in self.space.items()
            if preset.get(name) not in dimension
        }


def search_of(
    env_id: str, recipe: str, preset: str, method: Method, options: Mapping[str, Any]
) -> Search:
    # `options` are `epochs`, `settings` and `seeds` of `Search`; unset epochs are the preset's.
    config = recipes.resolve(recipe, preset, env_id)
    search = Search(
        env_id,
        recipe,
        preset,
        epochs=options.get("epochs") or config.epochs,
        settings=tuple(options.get("settings", ())),
        space=method.space,
        metrics=method.metrics,
        seeds=tuple(options["seeds"]),
    )
    known = known_to(parse_train(search.typed({})).config)
    for name in method.metrics:
        if name not in known:
            raise UsageError(f"--metric: no column {name[:80]!r}{suggestion(name, known)}")
    for name, dimension in method.space.items():
        if name in _SET_BY_TUNE:
            raise UsageError(
                f"--space: expected settings of the recipe, got {name}, which is the same for all "
                "trials or set by tune"
            )
        for value in dimension.ends:
            try:
                parse_train(search.typed({name: value}))
            except UsageError as fault:
                raise UsageError(f"--space: {fault}") from fault
    return search


def check_task(search: Search) -> None:
    """Refuses what would fail in every trial, before anything is written."""
    config = with_registered_world(parse_train(search.typed({})).config)
    check_split(config)
    with closing(LockstepEnvs(search.env_id, 1, config.env, world=config.world)) as envs:
        envs.mute_faults()
        check_steps(envs)


class Tuner:
    """Works on a study until it has enough trials, in as many threads as there are jobs."""

    def __init__(
        self, search: Search, say: Callable[[str], None], trainer: Sequence[str] = MUSIC_TF
    ) -> None:
        check_extra("tune", "optuna", "tune")
        self._search, self._say, self._trainer = search, say, tuple(trainer)
        self._failures = 0  # in a row
        self._warned = False
        left_out = [f"{name} {show_value(value)}" for name, value in search.left_out().items()]
        self.study = _opened(search)
        if left_out:
            say(f"the preset is no trial: the space does not hold its {', '.join(left_out)}")

    def work(self, trials: int, jobs: int, minutes: float) -> None:
        """Runs trials until the study has so many that have ended, or the minutes are over."""
        with (
            _storing(self._search.storage),
            tempfile.NamedTemporaryFile(
                dir=self._search.folder, prefix="worker_", suffix=".lock"
            ) as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)  # held while this process lives: see `_retry_killed`
            worker = Path(lock.name).name
            self._side_by_side([partial(self._run_trials, trials, worker)] * jobs, jobs, minutes)

    def check(self, seeds: Sequence[int], jobs: int) -> dict[str, list[float]]:
        """Trains preset and what was found on other seeds; returns the scores of each by seed."""
        best = self._best_trial
        compared = {"preset": ("preset", self._search.of_preset())}
        if best.user_attrs["values"] != self._search.of_preset():
            compared["found"] = (f"trial_{best.number:04d}", best.user_attrs["values"])
        runs = [
            partial(self._check_run, name, values, seed, f"check_{label}_seed{seed}")
            for seed in dict.fromkeys(seeds)
            for name, (label, values) in compared.items()
        ]
        with open(self._search.folder / "check.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process trains the same runs
            scored = self._side_by_side(runs, jobs, math.inf)
        return {name: scored[at :: len(compared)] for at, name in enumerate(compared)}

    @property
    def ended(self) -> int:
        """Trials so far that have a score or were ended early."""
        states = [trial.state.name for trial in self.study.get_trials(deepcopy=False)]
        return states.count("COMPLETE") + states.count("PRUNED")

    @property
    def best(self) -> dict[str, Any]:
        return dict(self._best_trial.user_attrs["values"])

    @property
    def _best_trial(self) -> "optuna.trial.FrozenTrial":
        try:
            with _storing(self._search.storage):
                return self.study.best_trial
        except ValueError as error:
            raise Stopped("tune: no trial has ended yet; the same command resumes it") from error

    @property
    def all_zero(self) -> bool:
        """Whether two trials or more have ended, and none has scored anything."""
        values = [trial.value for trial in self.study.trials if trial.state.name == "COMPLETE"]
        return len(values) > 1 and not any(values)

    def _side_by_side(
        self, calls: Sequence[Callable[[], Any]], jobs: int, minutes: float
    ) -> list[Any]:
        """Runs calls in threads; a request to stop and the first fault end all of them."""
        with ThreadPoolExecutor(jobs) as threads, Subprocesses(minutes) as self._processes:
            futures = [threads.submit(call) for call in calls]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                future.cancel()  # has no effect on one that has begun
            results = [
                future.result() for future in futures if future.done() and not future.cancelled()
            ]
            if self._processes.stopped:
                raise Stopped("tune: stopped; the same command resumes it")
        return results

    def _run_trials(self, trials: int, worker: str) -> None:
        while not self._processes.over and self.ended < trials:
            with open(self._search.storage.with_suffix(".lock"), "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # else two that ask at once get one queued trial
                trial = self.study.ask()
                trial.set_user_attr("worker", worker)
            try:
                self._run_trial(trial)
            except EnvironmentFault as fault:
                self._tell(trial, "FAIL")
                self._failures += 1
                if self._failures >= _MOST_FAILURES_IN_A_ROW:
                    raise EnvironmentFault(f"tune: trials fail\n{fault}") from fault
            else:
                self._failures = 0

    def _run_trial(self, trial: "optuna.Trial") -> None:
        space, seeds = self._search.space, self._search.seeds
        values = {name: dimension.suggest(name, trial) for name, dimension in space.items()}
        seed = seeds[trial.number % len(seeds)]
        trial.set_user_attr("values", values)
        trial.set_user_attr("seed", seed)
        self._say(f"trial {trial.number} begins: seed {seed}, {shlex.join(as_typed(values))}")
        folder = self._search.folder / f"trial_{trial.number:04d}"
        shutil.rmtree(folder, ignore_errors=True)  # of a study whose file was removed
        score = self._trained(values, seed, folder, trial)
        if score is not None:
            self.study.tell(trial, score)
            best = self.study.best_trial
            self._say(
                f"trial {trial.number}: score {score:.4g}, best {best.value:.4g} "
                f"(trial {best.number})"
            )
            if self.all_zero and not self._warned:
                self._warned = True
                self._say(_ALL_ZERO)
        elif self._processes.over:
            self.study.enqueue_trial(trial.params)
            self._tell(trial, "FAIL")
        else:
            self._tell(trial, "PRUNED")
            self._say(f"trial {trial.number}: ended early, behind the others")

    def _tell(self, trial: "optuna.Trial", state: str) -> None:
        from optuna.trial import TrialState  # noqa: PLC0415 - an extra

        self.study.tell(trial, state=TrialState[state])

    def _check_run(self, name: str, values: Mapping[str, Any], seed: int, folder: str) -> float:
        score = self._trained(values, seed, self._search.folder / folder)
        self._say(f"{name}, seed {seed}: {math.nan if score is None else score:.4g}")
        return math.nan if score is None else score

    def _trained(
        self,
        values: Mapping[str, Any],
        seed: int,
        folder: Path,  # a run that was trained to its end is read again, another replaced
        trial: "optuna.Trial | None" = None,  # gets each score, and may end the run
    ) -> float | None:
        """Trains a run and returns its score; None where it was ended before its last epoch."""
        reported, pruned = 0, False

        def report() -> bool:
            nonlocal reported, pruned
            if trial is None:
                return False
            for epoch, value in scores(folder, self._search.metrics)[reported:]:
                reported += 1
                trial.report(value, epoch)
                pruned |= trial.should_prune()
            return pruned

        if not (folder / SUMMARY_NAME).exists():
            if self._processes.over:
                return None
            words, log = self._search.words(values, seed, folder), folder.with_suffix(".log")

            def anew() -> list[str]:
                shutil.rmtree(folder, ignore_errors=True)
                return [*self._trainer, "train", *words]

            code = self._processes.run_twice(anew, log, report)
            if code == EXIT_DONE:
                report()
            elif pruned or self._processes.over:
                return None
            else:
                text = "\n".join([f"exit code {code}", *last_lines(log)])
                raise EnvironmentFault(f"{shlex.join(words)}\n{text}")
        scored = scores(folder, self._search.metrics)
        if not scored:
            names = " or ".join(self._search.metrics)
            raise EnvironmentFault(f"{folder}: no evaluation has {names}, which scores a run")
        return float(np.mean([value for _, value in scored[-_SCORED_EVALUATIONS:]]))


def _opened(search: Search) -> "optuna.Study":
    """Opens or makes the study of a search, with what killed processes left back in its queue."""
    import optuna  # noqa: PLC0415 - an extra

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    path = search.storage
    with _storing(path, RuntimeError):  # of a study of another version of Optuna
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may begin at once
            study = optuna.create_study(
                storage=optuna.storages.RDBStorage(
                    f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}}
                ),
                study_name="tune",
                direction="maximize",
                load_if_exists=True,
                sampler=optuna.samplers.TPESampler(multivariate=True, constant_liar=True),
                pruner=optuna.pruners.MedianPruner(_UNPRUNED_TRIALS, max(1, search.epochs // 3)),
            )
            if not study.trials and not search.left_out():
                study.enqueue_trial(search.of_preset())  # what is found is at least as good
            _retry_killed(study, search.folder)
    return study


def _retry_killed(study: "optuna.Study", folder: Path) -> None:
    """Puts trials whose process was killed back into the queue: nobody holds its lock."""
    from optuna.trial import TrialState  # noqa: PLC0415 - an extra

    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        worker = trial.user_attrs.get("worker", "none")
        try:
            with open(folder / worker, "r+", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a process holds it
            continue
        except FileNotFoundError:  # a process that ends removes it
            pass
        ended = study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        if ended.state is TrialState.FAIL:  # else it ended just before its lock was let go
            study.enqueue_trial({**trial.system_attrs.get("fixed_params", {}), **trial.params})


@contextmanager
def _storing(path: Path, *others: type[Exception]) -> Iterator[None]:
    """Turns errors of the database, and `others`, into EnvironmentFault."""
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415 - an extra
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - comes with Optuna

    try:
        yield
    except (OSError, SQLAlchemyError, StorageInternalError, *others) as error:
        reason = str(error.__cause__ or error).partition("\n")[0][:120]
        raise EnvironmentFault(
            f"{path}: cannot be read or written ({reason})\n"
            f"make room on its disk, or move {path.parent} away to begin anew"
        ) from error


def summary(search: Search, tuner: Tuner, checked: Mapping[str, Sequence[float]]) -> list[str]:
    best, trials = tuner.best, f"{tuner.ended} trial{'s' * (tuner.ended != 1)}"
    counts = f"{trials}, best score {tuner.study.best_value:.4g}"
    lines = [f"{counts} ({' or '.join(search.metrics)}, mean of the last {_SCORED_EVALUATIONS})"]
    lines += [_ALL_ZERO] if tuner.all_zero else []
    means = {name: float(np.mean(values)) for name, values in checked.items() if values}
    for name, mean in means.items():
        shown = "  ".join(f"{value:.4g}" for value in checked[name])
        lines.append(f"{name:8} on seeds of its own: mean {mean:.4g}   {shown}")
    if best == search.of_preset():
        lines.append("no trial has beaten the preset")
    elif "found" in means and not means["found"] >= means["preset"]:
        lines.append("on seeds of its own the preset is better; this line trains with it")
        best = {}
    return [*lines, shlex.join(["music-tf", "train", *search.typed(best)])]
