"""Searches settings for an environment with Optuna, over as many processes as are started.

A trial is a run of `music-tf train` with one of the tuning seeds. Trials and their scores lie in an
SQLite file, so that any process goes on where others were stopped or killed. What was found is
trained once more beside the preset, on seeds that no trial has used.
"""

import dataclasses
import fcntl
import hashlib
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from music_tf import recipes
from music_tf.config.fields import fields_of, show_value
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import with_registered_world
from music_tf.envs.registry import lookup, no_split
from music_tf.envs.repeating import check_steps
from music_tf.errors import EXIT_DONE, EnvironmentFault, MusicError, Stopped, UsageError
from music_tf.hints import hints_of
from music_tf.process.children import check_extra
from music_tf.reading.command import TrainCommand, as_typed, parse_train
from music_tf.reading.stored import runs_root
from music_tf.storage.provenance import versions
from music_tf.storage.results import scores
from music_tf.storage.run_directory import SUMMARY_NAME
from music_tf.storage.run_paths import TRIALS, folder_name
from music_tf.tools.pool import started
from music_tf.tools.spaces import Method, Numbers, Space

if TYPE_CHECKING:  # an extra
    import optuna

STORAGE_NAME = "study.db"
_FORMAT = 2
"""Format of what is stored beside Optuna's own tables."""
_POLL_SECONDS, _SECONDS_TO_BEGIN = 0.5, 60.0
_ENOUGH_FOR_PRUNING = 4
"""Trials that run to their end before any is pruned."""
_DIGITS = 3
"""By which a number that is proposed is finer than its range is wide."""
_ALL_ZERO = (
    "all trials so far score 0, so that none is better: give them more --epochs, or a --metric "
    "that moves earlier, such as eval/goal_moved_rate"
)
_LAST = 3
"""Evaluations at the end of a run whose mean is its score."""
_MOST_FAILURES = 3
"""Trials in a row that may fail before the search gives up."""
_SHOWN_LINES = 6
_DIGEST_LENGTH = 12
_SET_BY_TUNE = frozenset({*hints_of(TrainCommand), "env_id", "epochs", "seed"})
"""Options of `train` that are no part of a space: tune sets them, or they are no settings."""


class StudyFault(EnvironmentFault):
    """The file of the study cannot be read or written, so no trial can."""


@dataclasses.dataclass(frozen=True)
class Search:
    """What is searched; two processes work on one study if theirs are equal."""

    env_id: str
    recipe: str
    preset: str
    epochs: int
    """Epochs of each run."""
    settings: tuple[str, ...]
    """Those of environment and world that all runs share, as they are typed."""
    space: Space
    metrics: tuple[str, ...]
    """The first of them that a run has scores it; larger is better."""
    seeds: tuple[int, ...]
    """Trials take them one after the other."""

    @property
    def folder(self) -> Path:
        """Where all of it lies, in full."""
        return runs_root().absolute() / TRIALS / f"{folder_name(self.env_id)}_{self.recipe}"

    @property
    def storage(self) -> Path:
        return self.folder / STORAGE_NAME

    def trial_folder(self, number: int) -> Path:
        """Returns the directory of a trial's run; a lock beside it says that the trial lives."""
        return self.folder / f"trial_{number:04d}"

    def words(self, values: Mapping[str, Any], seed: int, folder: Path) -> list[str]:
        """Returns what follows `music-tf train` for a run with these values."""
        return [
            *self.typed(values),
            *("--seed", str(seed), "--epochs", str(self.epochs), "--run-dir", str(folder)),
        ]

    def check_folder(self, name: str, values: Mapping[str, Any], seed: int) -> Path:
        """Returns the directory of a run beside the trials; other values have another one."""
        said = [versions()["music_tf"], self.epochs, *self.typed(values)]
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:_DIGEST_LENGTH]
        return self.folder / f"check_{name}_{digest}_seed{seed}"

    def typed(self, values: Mapping[str, Any]) -> list[str]:
        """Returns recipe, environment and settings as they are typed."""
        head = [self.recipe, "--env-id", self.env_id]
        preset = [] if self.preset == recipes.DEFAULT_PRESET else ["--preset", self.preset]
        return [*head, *preset, *self.settings, *as_typed(values)]

    def of_preset(self) -> dict[str, Any]:
        """Returns the values that the preset has for what is searched."""
        config = recipes.resolve(self.recipe, self.preset, self.env_id)
        return {one.name: one.value for one in fields_of(config) if one.name in self.space}

    def left_out(self) -> dict[str, Any]:
        """Returns those values of the preset that the space does not hold."""
        start = self.of_preset()
        return {
            name: start.get(name)
            for name, dimension in self.space.items()
            if not _inside(start.get(name), dimension)
        }

    def record(self) -> dict[str, Any]:
        """Returns what makes two studies one, as JSON values."""
        space = {name: dimension.to_json() for name, dimension in self.space.items()}
        said = {**dataclasses.asdict(self), "space": space}
        found: dict[str, Any] = json.loads(json.dumps(said))
        return {"format": _FORMAT, "music_tf": versions()["music_tf"], **found}


def search_of(
    env_id: str, recipe: str, preset: str, method: Method, options: Mapping[str, Any]
) -> Search:
    """Returns a search whose settings and values `train` accepts."""
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
    parse_train(search.typed({}))
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
    info = lookup(search.env_id)
    asked = any(term.needs_split for term in config.rewards.values())
    if asked and not config.world.agent and info.split is None:
        raise no_split(search.env_id, info)
    with closing(LockstepEnvs(search.env_id, 1, config.env, world=config.world)) as envs:
        envs.hush()
        check_steps(envs)


class Tuner:
    """Works on a study until it has enough trials, in as many threads as there are jobs."""

    def __init__(
        self,
        search: Search,
        say: Callable[[str], None],
        trainer: Sequence[str] = (sys.executable, "-m", "music_tf"),
    ) -> None:
        """Opens the study of a search, or makes it."""
        check_extra("tune", "optuna", "tune")
        self._search, self._say, self._trainer = search, say, tuple(trainer)
        self._stop = threading.Event()
        self._failures: list[str] = []
        self._told = False
        self._fault: StudyFault | None = None
        self._locks: dict[int, TextIO] = {}
        self._deadline = math.inf
        self.study = _opened(search)
        left_out = [f"{name} {show_value(value)}" for name, value in search.left_out().items()]
        if left_out:
            say(f"the preset is no trial: the space does not hold its {', '.join(left_out)}")

    def work(self, trials: int, jobs: int, minutes: float) -> None:
        """Runs trials until the study has so many that have ended, or the minutes are over."""
        self._deadline = time.monotonic() + 60.0 * minutes
        try:
            with _storing(self._search.storage):
                if self.ended >= trials:
                    return
                with self._stopping():
                    self._optimize(trials, jobs, minutes)
        finally:
            for lock in self._locks.values():
                lock.close()
            self._locks.clear()
        if self._fault is not None:
            raise self._fault
        if len(self._failures) >= _MOST_FAILURES:
            raise EnvironmentFault(f"tune: trials fail\n{self._failures[-1]}")
        if self._stop.is_set():
            raise Stopped("tune: stopped; the same command resumes it")

    def check(self, seeds: Sequence[int], jobs: int) -> dict[str, list[float]]:
        """Trains preset and what was found on other seeds; returns the scores of each by seed."""
        self._deadline = math.inf
        found = {"preset": self._search.of_preset(), "found": self.best}
        if found["found"] == found["preset"]:
            del found["found"]
        todo = [(name, seed) for seed in seeds for name in found]
        with self._stopping(), ThreadPoolExecutor(jobs) as threads:
            runs = [threads.submit(self._checked, found[name], name, seed) for name, seed in todo]
            wait(runs, return_when=FIRST_EXCEPTION)
            failed = [run for run in runs if run.done() and run.exception() is not None]
            if failed:
                self._stop.set()
                threads.shutdown(cancel_futures=True)
                failed[0].result()
            scored = [run.result() for run in runs]
        if self._stop.is_set():
            raise Stopped("tune: stopped; the same command resumes it")
        return {
            name: [score for score, (of, _) in zip(scored, todo, strict=True) if of == name]
            for name in found
        }

    @property
    def ended(self) -> int:
        """Trials so far that have a score or were ended early."""
        return len(self.study.get_trials(deepcopy=False, states=_ended_states()))

    @property
    def best(self) -> dict[str, Any]:
        """The values of the trial with the highest score, as they were trained.

        The preset is one of the trials only where the space holds its values.
        """
        try:
            with _storing(self._search.storage):
                return dict(self.study.best_params)
        except ValueError as error:
            raise Stopped("tune: no trial has ended yet; the same command resumes it") from error

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Lets Ctrl-C and SIGTERM end what is going on."""
        handlers = {
            number: signal.signal(number, lambda *_: self._stop.set())
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _optimize(self, trials: int, jobs: int, minutes: float) -> None:
        from optuna.study import MaxTrialsCallback  # noqa: PLC0415 - an extra

        self.study.optimize(
            self._try,
            n_jobs=jobs,
            timeout=None if math.isinf(minutes) else 60.0 * minutes,
            catch=(MusicError,),
            callbacks=[MaxTrialsCallback(trials, states=_ended_states()), self._after],
        )

    def _try(self, trial: "optuna.Trial") -> float:
        """Trains a trial and returns its score; notes why it fails, for all of its faults."""
        try:
            with _storing(self._search.storage):
                return self._tried(trial)
        except StudyFault as fault:  # no other trial can be written either
            self._fault = fault
            self._stop.set()
            raise
        except EnvironmentFault as fault:
            self._failures.append(str(fault))
            raise

    def _tried(self, trial: "optuna.Trial") -> float:
        """Trains a trial and returns its score; one that is far behind is ended early."""
        from optuna import TrialPruned  # noqa: PLC0415 - an extra

        values = {name: _suggested(trial, name, one) for name, one in self._search.space.items()}
        seed = self._search.seeds[trial.number % len(self._search.seeds)]
        folder = self._search.trial_folder(trial.number)

        def heard(epoch: int, value: float) -> bool:
            trial.report(value, epoch)
            return bool(trial.should_prune())

        trial.set_user_attr("seed", seed)
        self._say(f"trial {trial.number} begins: seed {seed}, {shlex.join(as_typed(values))}")
        lock = open(folder.with_suffix(".lock"), "w", encoding="utf-8")  # noqa: SIM115
        self._locks[trial.number] = lock
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the study knows how the trial ended
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier study in the same place
        score = self._trained(values, seed, folder, heard)
        if self._stop.is_set() or time.monotonic() >= self._deadline:
            self.study.enqueue_trial(trial.params)
            raise Stopped("tune: stopped")
        if score is None:
            raise TrialPruned
        return score

    def _after(self, study: "optuna.Study", trial: "optuna.trial.FrozenTrial") -> None:
        """Says how a trial ended, and ends the search where it must not go on."""
        from optuna.trial import TrialState  # noqa: PLC0415 - an extra

        if trial.number in self._locks:
            self._locks.pop(trial.number).close()
        if trial.state is TrialState.COMPLETE:
            self._failures.clear()
            self._say(
                f"trial {trial.number}: score {trial.value:.4g}, "
                f"best {study.best_value:.4g} (trial {study.best_trial.number})"
            )
            if _all_zero(study) and not self._told:
                self._told = True
                self._say(_ALL_ZERO)
        elif trial.state is TrialState.PRUNED:
            self._failures.clear()
            self._say(f"trial {trial.number}: ended early, behind the others")
        if self._stop.is_set() or len(self._failures) >= _MOST_FAILURES:
            self._stop.set()
            study.stop()

    def _checked(self, values: Mapping[str, Any], name: str, seed: int) -> float:
        folder = self._search.check_folder(name, values, seed)
        with self._alone_in(folder) as alone:
            if not alone:
                return math.nan
            score = self._trained(values, seed, folder, lambda *_: False)
        self._say(f"{name}, seed {seed}: {math.nan if score is None else score:.4g}")
        return math.nan if score is None else score

    @contextmanager
    def _alone_in(self, folder: Path) -> Iterator[bool]:
        """Waits until no other process of the study trains in a directory; False after a stop."""
        with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            while not self._stop.is_set():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_POLL_SECONDS)
            yield not self._stop.is_set()

    def _trained(
        self,
        values: Mapping[str, Any],
        seed: int,
        folder: Path,  # one that was trained to its end is read again, another replaced
        heard: Callable[[int, float], bool],  # takes each epoch with its value; says whether to end
    ) -> float | None:
        """Trains a run and returns its score; None where it was ended before its last epoch."""
        if not (folder / SUMMARY_NAME).exists():
            shutil.rmtree(folder, ignore_errors=True)
            if self._process(self._search.words(values, seed, folder), folder, heard):
                return None
        scored = scores(folder, self._search.metrics)
        if not scored:
            names = " or ".join(self._search.metrics)
            raise EnvironmentFault(f"{folder}: no evaluation has {names}, which scores a run")
        return float(np.mean([value for _, value in scored[-_LAST:]]))

    def _process(
        self, words: Sequence[str], folder: Path, heard: Callable[[int, float], bool]
    ) -> bool:
        """Trains in a process of its own; returns whether it was ended before its last epoch."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        log_path = folder.with_suffix(".log")
        command = [*self._trainer, "train", *words]
        with log_path.open("wb") as log:
            process = started(command, log)
        try:
            asked = self._followed(process, folder, heard)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # nobody hears how it goes on
                process.wait()
        if not asked and process.returncode != EXIT_DONE:
            lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
            text = "\n".join(lines[-_SHOWN_LINES:])
            raise EnvironmentFault(f"{shlex.join(words)}\nexit code {process.returncode}\n{text}")
        return asked

    def _followed(
        self, process: "subprocess.Popen[bytes]", folder: Path, heard: Callable[[int, float], bool]
    ) -> bool:
        """Waits for a process; returns whether it was asked to end."""
        seen, asked, going = 0, False, True
        while going:
            time.sleep(_POLL_SECONDS)
            going = process.poll() is None
            for epoch, value in scores(folder, self._search.metrics)[seen:]:
                seen += 1
                asked = (heard(epoch, value) and going) or asked
            over = self._stop.is_set() or time.monotonic() >= self._deadline
            if going and (asked or over):  # again and again: a process that begins is deaf
                asked = True
                process.send_signal(signal.SIGTERM)
        return asked


def _suggested(trial: "optuna.Trial", name: str, dimension: Any) -> Any:
    if isinstance(dimension, Numbers):
        return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)
    return trial.suggest_categorical(name, dimension.values)


def rounded(value: float, low: float, high: float, log: bool) -> float:
    """Returns a number with few digits, in a range that keeps a thousand values or more.

    The last digit is a thousandth of the width of the range or less; with `log` also of the value.
    """
    size = min(high - low, value) if log else high - low
    return min(max(round(value, _DIGITS - math.floor(math.log10(size))), low), high)


def _sampler() -> "optuna.samplers.BaseSampler":
    """Returns TPE that stores its numbers rounded, so it knows what was trained."""
    from optuna.distributions import BaseDistribution, FloatDistribution  # noqa: PLC0415 - an extra
    from optuna.samplers import TPESampler  # noqa: PLC0415 - an extra

    def typed(value: Any, within: BaseDistribution) -> Any:
        if not isinstance(within, FloatDistribution):
            return value
        return rounded(value, within.low, within.high, within.log)

    class Rounded(TPESampler):
        def sample_relative(
            self,
            study: "optuna.Study",
            trial: "optuna.trial.FrozenTrial",
            search_space: dict[str, BaseDistribution],
        ) -> dict[str, Any]:
            found = super().sample_relative(study, trial, search_space)
            return {name: typed(value, search_space[name]) for name, value in found.items()}

        def sample_independent(
            self,
            study: "optuna.Study",
            trial: "optuna.trial.FrozenTrial",
            param_name: str,
            param_distribution: BaseDistribution,
        ) -> Any:
            found = super().sample_independent(study, trial, param_name, param_distribution)
            return typed(found, param_distribution)

    return Rounded(multivariate=True, constant_liar=True)


def _opened(search: Search) -> "optuna.Study":
    import optuna  # noqa: PLC0415 - an extra

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = search.storage
    unreadable: tuple[type[Exception], ...] = (RuntimeError, *_database_errors())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may begin at once
            study = _made(search, path)
            _check_same(study, search, path)
            _retry_dead(study, search)
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written ({error.strerror})") from error
    except unreadable as error:
        if _is_of_the_disk(error):
            raise StudyFault(f"{path}: cannot be written ({_first_line(error)})") from error
        raise UsageError(
            f"{path}: expected a study of Optuna {optuna.__version__}, got another file or one of "
            f"another version ({_first_line(error)})\n{_otherwise(path)}"
        ) from error
    return study


def _made(search: Search, path: Path) -> "optuna.Study":
    import optuna  # noqa: PLC0415 - an extra

    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    storage = optuna.storages.RDBStorage(
        f"sqlite:///{path}",
        engine_kwargs={"connect_args": {"timeout": 60}},
    )
    return optuna.create_study(
        storage=storage,
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
        sampler=_sampler(),
        pruner=optuna.pruners.MedianPruner(_ENOUGH_FOR_PRUNING, max(1, search.epochs // 3)),
    )


def _retry_dead(study: "optuna.Study", search: Search) -> None:
    """Puts trials whose process was killed back into the queue: nobody holds their locks."""
    from optuna.trial import TrialState  # noqa: PLC0415 - an extra

    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        path = search.trial_folder(trial.number).with_suffix(".lock")
        age = time.time() - trial.datetime_start.timestamp() if trial.datetime_start else math.inf
        if not path.exists() and age < _SECONDS_TO_BEGIN:
            continue
        with open(path, "a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            told = study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
            if told.state is not TrialState.FAIL:  # it ended just before its lock was let go
                continue
            study.enqueue_trial({**trial.system_attrs.get("fixed_params", {}), **trial.params})


def _database_errors() -> tuple[type[Exception], ...]:
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415 - an extra
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - comes with Optuna

    return SQLAlchemyError, StorageInternalError


def _is_of_the_disk(error: BaseException) -> bool:
    """Whether a database cannot be used now: it is locked, may not be written, the disk is full."""
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415 - comes with Optuna

    cause = (
        error if error.__cause__ is None or isinstance(error, OperationalError) else error.__cause__
    )
    return isinstance(cause, OperationalError) and "no such" not in str(cause)  # tables, columns


def _first_line(error: BaseException) -> str:
    """Returns what a database says, without what Optuna says of it."""
    inner = error.__cause__ if type(error).__name__ == "StorageInternalError" else None
    return str(inner or error).splitlines()[0][:120]


@contextmanager
def _storing(path: Path) -> Iterator[None]:
    """Makes faults of the database, which was fine when it was opened, those of the machine."""
    try:
        yield
    except Exception as error:  # Optuna asserts where the end of a trial cannot be stored
        for fault in (error, error.__context__):
            if isinstance(fault, _database_errors()):
                text = f"{path}: cannot be written ({_first_line(fault)})"
                raise StudyFault(text) from error
        raise


def _ended_states() -> "tuple[optuna.trial.TrialState, ...]":
    """Returns the states of trials that count."""
    from optuna.trial import TrialState  # noqa: PLC0415 - an extra

    return TrialState.COMPLETE, TrialState.PRUNED


def _all_zero(study: "optuna.Study") -> bool:
    """Whether two trials or more have ended, and none has scored anything."""
    values = [trial.value for trial in study.get_trials(states=_ended_states()[:1])]
    return len(values) > 1 and not any(values)


def _check_same(study: "optuna.Study", search: Search, path: Path) -> None:
    """Checks that a study is of this search and this version; notes both in a new one."""
    expected, stored = search.record(), study.user_attrs.get("search")
    if stored is None and not study.trials:
        study.set_user_attr("search", expected)
        start = search.of_preset()
        if not search.left_out():
            study.enqueue_trial(start, skip_if_exists=True)  # what is found is at least as good
        return
    if not isinstance(stored, dict):
        raise UsageError(f"{path}: expected a study of music-tf tune\n{_otherwise(path)}")
    for name, value in expected.items():
        if stored.get(name) != value:
            raise UsageError(
                f"{path}: the study there has {name} {show_value(stored.get(name))!s:.120}, this "
                f"one {show_value(value)!s:.120}; their scores do not compare\n{_otherwise(path)}"
            )


def _otherwise(path: Path) -> str:
    return f"move {path.parent} away, or set MUSIC_TF_RUNS to another folder"


def _inside(value: Any, dimension: Any) -> bool:
    if isinstance(dimension, Numbers):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and dimension.low <= value <= dimension.high
    return value in dimension.values


def summary(search: Search, tuner: Tuner, checked: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns what a search has found, in lines; the last one trains with it."""
    best, lines = tuner.best, []
    trials = f"{tuner.ended} trial{'s' * (tuner.ended != 1)}"
    counts = f"{trials}, best score {tuner.study.best_value:.4g}"
    lines.append(f"{counts} ({' or '.join(search.metrics)}, mean of the last {_LAST})")
    lines += [_ALL_ZERO] if _all_zero(tuner.study) else []
    for name, values in checked.items():
        if values:
            shown = "  ".join(f"{value:.4g}" for value in values)
            lines.append(f"{name:8} on seeds of its own: mean {np.mean(values):.4g}   {shown}")
    means = {name: float(np.mean(values)) for name, values in checked.items() if values}
    if best == search.of_preset():
        lines.append("no trial has beaten the preset")
    elif means and not means["found"] >= means["preset"]:
        lines.append("on seeds of its own the preset is better; this line trains with it")
        best = {}
    return [*lines, shlex.join(["music-tf", "train", *search.typed(best)])]
