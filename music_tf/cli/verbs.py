"""The verbs that run in one process, and the options of those that are not about runs."""

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from music_tf import recipes
from music_tf.cli.run_verbs import Evaluate, Play, Plot, Report, Skills, Verb
from music_tf.config.fields import In
from music_tf.config.names import check_env_id
from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, UsageError
from music_tf.process.launcher import launched_world_size
from music_tf.process.machine import available_cores
from music_tf.reading.command import changes_as_typed
from music_tf.reading.options import Flag, read
from music_tf.storage.run_paths import agents


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipes(Verb):
    """Lists recipes and ready-made agents; with a name, says more about that one.

    Where the output does not go to a terminal it has the names of recipes alone.
    """

    example: ClassVar[str] = "recipes ddpg_music"

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Recipes or agents to explain; none: lists all."""

    def act(self) -> int:
        every, ready = recipes.names(), agents()
        lines = [] if self.names else list(every)
        for name in self.names:
            if name in ready:
                lines += [f"{name}: {ready[name]['does']}", f"made by: {ready[name]['command']}"]
                continue
            presets = f"presets: {', '.join(recipes.presets(name))}"
            lines += [f"{name}: {recipes.describe(name, whole=True)}"]
            lines += [f"{presets}; all settings: music-tf train {name} --help"]
        if not self.names and sys.stdout.isatty() and launched_world_size() == 1:
            lines = [f"{name:27}{recipes.describe(name)}" for name in every]  # mpirun fakes one
            does = {name: about["does"].partition(". ")[0] for name, about in ready.items()}
            last = [f"{name:27}{text.removesuffix('.')}." for name, text in does.items()]
            more = "music-tf recipes NAME says more; agents are for play, evaluate and --init-from"
            lines = ["recipes, for music-tf train:", *lines, "agents:", *last, more]
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckEnv(Verb):
    """Makes an environment, plays it with random actions, and says what training cannot handle."""

    example: ClassVar[str] = "check-env FetchPush-v4"
    untold: ClassVar[tuple[str, ...]] = ("env.skill", "env.success", "env.changes")

    id: Annotated[str, tyro.conf.Positional] = tyro.MISSING
    """A known environment, or module:Id for your own."""
    env: EnvConfig = dataclasses.field(default_factory=EnvConfig)

    def act(self) -> int:
        env_id = check_env_id(self.id)
        from music_tf.tools.check_env import check_environment  # noqa: PLC0415 - numpy, MuJoCo

        findings = list(check_environment(env_id, self.env))
        sys.stdout.writelines(f"{finding}\n" for finding in findings)
        return EXIT_DONE if all(finding.ok for finding in findings) else EXIT_ENVIRONMENT


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyVerb(Verb):
    """Trains the missing runs of a comparison, several side by side.

    Resumes interrupted runs, and writes a CSV for each run that has ended. Ctrl-C and the end of
    --max-minutes let the runs save (exit code 75: the same command resumes them); a second Ctrl-C
    ends them at once. A run that fails is reported and does not stop the others (exit code 3 at the
    end). Each run has one thread.
    """

    example: ClassVar[str] = "study experiments/studies/music_controls.py --max-minutes 100"

    file: Annotated[Path, tyro.conf.Positional] = tyro.MISSING
    """A Python file that defines STUDY."""
    list: Flag = False
    """Show the runs and their states."""
    dry_run: Flag = False
    """Show the commands that are missing, start nothing."""
    jobs: Annotated[int, In(1, math.inf)] = dataclasses.field(default_factory=available_cores)
    """Runs side by side; by default as many as there are cores."""
    max_minutes: Annotated[float, In(0, math.inf, "(]")] = math.inf
    """Save and stop after these."""
    out: Path = Path("experiments/results")
    """Folder of the stored results."""

    def act(self) -> int:
        from music_tf.tools import study_runner  # noqa: PLC0415 - numpy

        if self.list or self.dry_run:
            return study_runner.show_plan(self.file, self.out, commands=self.dry_run)
        return study_runner.train_missing(self.file, self.out, self.jobs, self.max_minutes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tune(Verb):
    """Searches settings of a method for an environment, by repeated training (Optuna).

    The first trial is the preset if the space holds it. Bad trials end early. The best setting is
    then trained beside the preset on other seeds; the last line is the command with the better one.
    The same command resumes the study, and several processes of it share the study. Needs the
    extra tune.
    """

    example: ClassVar[str] = "tune FetchReach-v4 --method ddpg_her --epochs 5 --minutes 30"

    id: Annotated[str, tyro.conf.Positional] = tyro.MISSING
    """A known environment, or module:Id for your own."""
    method: str = "ddpg_music"
    """What to tune: ddpg_music, ddpg_her, sac or sac_diayn."""
    preset: str = recipes.DEFAULT_PRESET
    """Preset of all other settings."""
    trials: Annotated[int, In(1, 10**5)] = 40
    """Trials in all, those of earlier starts included."""
    epochs: Annotated[int | None, In(1, 10**9)] = None
    """Epochs of each trial; default those of the preset."""
    minutes: Annotated[float, In(0, math.inf, "(]")] = math.inf
    """Minutes of the search; the runs on the other seeds follow."""
    jobs: Annotated[int, In(1, 1024)] = dataclasses.field(default_factory=available_cores)
    """Trials side by side; by default as many as there are cores."""
    space: Path | None = None
    """A JSON file of the settings to search, as in {"exploration.noise": {"low": 0.05, "high":
    0.4}, "updates": {"choices": [40, 80]}}; default a small space of the method."""
    metric: str | None = None
    """A column of metrics.csv to maximise; default that of the method."""
    seeds: tuple[int, ...] = tuple(range(100, 120))
    """Seeds of the trials, in turn."""
    check_seeds: tuple[int, ...] = (200, 201, 202)
    """Seeds of the runs that compare the best setting with the preset; empty: no such runs."""
    env: EnvConfig = dataclasses.field(default_factory=EnvConfig)
    world: World = dataclasses.field(default_factory=World)

    def act(self) -> int:
        from music_tf.tools import spaces, tune  # noqa: PLC0415 - numpy

        method = spaces.method_of(self.method)
        if self.space is not None:
            method = dataclasses.replace(method, space=spaces.read_space(self.space))
        if self.metric is not None:
            method = dataclasses.replace(method, metrics=(self.metric,))
        if both := sorted({*self.seeds} & {*self.check_seeds}):
            raise UsageError(
                f"--check-seeds: expected seeds that no trial has, got {both[0]} in --seeds, too"
            )
        if not self.seeds:
            raise UsageError("--seeds: expected one or more, got none")
        shared = changes_as_typed(self.env, self.world)
        options = {"epochs": self.epochs, "seeds": self.seeds, "settings": shared}
        search = tune.search_of(check_env_id(self.id), self.method, self.preset, method, options)
        tune.check_task(search)

        def say(text: str) -> None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

        tuner = tune.Tuner(search, say)
        say(f"study: {search.storage}, {tuner.ended} of {self.trials} trials have ended")
        tuner.work(self.trials, self.jobs, self.minutes)
        for line in tune.summary(search, tuner, tuner.check(self.check_seeds, self.jobs)):
            say(line)
        return EXIT_DONE


VERBS: dict[str, type[Verb]] = {
    "evaluate": Evaluate,
    "play": Play,
    "skills": Skills,
    "plot": Plot,
    "report": Report,
    "study": StudyVerb,
    "tune": Tune,
    "recipes": Recipes,
    "check-env": CheckEnv,
}


def run(verb: str, arguments: Sequence[str]) -> int:
    """Runs one of `VERBS` and returns its exit code; --help ends the process."""
    options = read(VERBS[verb], verb, arguments)
    try:
        return options.act()
    except SystemExit as error:  # exit code 0 would mean success
        raise RuntimeError(f"{verb}: a module of yours calls sys.exit({error.code!r})") from error
