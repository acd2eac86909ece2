"""What a verb of one process takes, and what it calls with that.

Whatever is heavy is imported by the verb that needs it, after its command line has been read.
"""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from tyro.conf import arg

from music_tf import recipes
from music_tf.config.command import POSITIONAL, Options, read
from music_tf.config.fields import In
from music_tf.config.names import check_env_id, few, suggestion
from music_tf.config.stored import CONFIG_NAME, LATEST, allow_recipe, runs_root, stored_env_id
from music_tf.errors import EXIT_DONE, EXIT_ENVIRONMENT, UsageError
from music_tf.process import launched_world_size, prepare_tensorflow
from music_tf.storage.run_directory import find_run

_DATASET = re.compile(r"[\w-]+(/[\w-]+)*-v\d+", re.ASCII)
_FILMS = (".mp4", ".gif")


def run(verb: str, arguments: Sequence[str]) -> int:
    """Runs one of `VERBS` and returns its exit code; --help ends the process.

    Raises:
        MusicError: The command line is wrong, or the verb met a fault that the user can mend.
    """
    kind = VERBS[verb]
    return read(kind, verb, arguments, kind.example).act()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verb(Options):
    """A verb with its options."""

    example: ClassVar[str]
    """A right command line, after `music-tf`."""

    def act(self) -> int:
        """Does what was asked for and returns the exit code."""
        raise NotImplementedError


OneRun: TypeAlias = Annotated[str, POSITIONAL, arg(metavar="RUN")]
Runs: TypeAlias = Annotated[tuple[str, ...], POSITIONAL, arg(metavar="RUN")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate(Verb):
    """Plays the latest policy of a run without exploration.

    Writes a table of its success rate and behaviour, and RUN/evaluation.json.
    """

    example: ClassVar[str] = "evaluate latest"

    run: OneRun
    """A run directory, or latest."""
    episodes: Annotated[int, In(1, 10**6)] = 100
    """How many episodes."""
    full: bool = False
    """Judge control too: coverage, contact, spread, information between robot and object
    (docs/metrics.md explains them); takes a minute longer."""
    export: Path | None = None
    """An .npz file for the episodes of our policy, as plain arrays."""
    minari: str | None = None
    """Write them as a Minari dataset with an id such as push/music-v0."""
    env_id: str | None = None
    """The id of your own environment again, as module:Id: no file may import it."""
    allow_import: bool = False
    """Let the run import the modules of your own recipe and environment that it names."""

    def act(self) -> int:
        """Evaluates a run."""
        run = find_run(self.run)
        npz = self.export
        if npz is not None and npz.suffix != ".npz":
            raise UsageError(f"--export: expected a file that ends in .npz, got {str(npz)[:200]!r}")
        if npz is not None and not os.path.isdir(npz.parent):
            raise UsageError(f"--export: expected a folder, got {str(npz.parent)[:200]!r}")
        if self.minari is not None and not _DATASET.fullmatch(self.minari):
            raise UsageError(
                f"--minari: expected an id such as push/music-v0, got {self.minari[:80]!r}"
            )
        env_id = _typed_env_id(self.env_id, self.allow_import, run)
        prepare_tensorflow()
        from music_tf.runs.inspection import evaluate_run  # noqa: PLC0415 - numpy, MuJoCo
        from music_tf.tools.export import exporter  # noqa: PLC0415 - the same

        export = exporter(npz, self.minari)
        evaluate_run(run, self.episodes, env_id, full=self.full, export=export)
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Play(Verb):
    """Films the latest policy of a run without exploration."""

    example: ClassVar[str] = "play latest --out push.gif"

    run: OneRun
    """A run directory, or latest."""
    episodes: Annotated[int, In(1, 1000)] = 4
    """How many episodes, of each skill."""
    skill: str = "all"
    """One skill, counted from 0, or all."""
    out: Path | None = None
    """An .mp4 or .gif file; default RUN/videos/policy.mp4."""
    env_id: str | None = None
    """The id of your own environment again, as module:Id: no file may import it."""
    allow_import: bool = False
    """Let the run import the modules of your own recipe and environment that it names."""

    def act(self) -> int:
        """Makes a video."""
        run = find_run(self.run)
        number = self.skill.isascii() and self.skill.isdigit() and len(self.skill) <= 4  # noqa: PLR2004 - of 4096
        if not number and self.skill != "all":
            raise UsageError(
                f"--skill: expected a skill counted from 0, or all, got {self.skill[:80]!r}"
            )
        out = _file(self.out or run / "videos" / "policy.mp4", _FILMS)
        env_id = _typed_env_id(self.env_id, self.allow_import, run)
        prepare_tensorflow()
        from music_tf.tools.film import play  # noqa: PLC0415 - numpy, MuJoCo

        play(run, self.episodes, int(self.skill) if number else None, out, env_id)
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot(Verb):
    """Draws learning curves.

    Runs that differ in their seed alone share a line: the interquartile mean over the seeds, each
    seed thinly behind, a 95 % bootstrap band from three on. Copies of a metrics.csv in one folder
    share a line, and CONDITION_seedN.csv a line for each condition. What cannot be drawn is named
    and left out.
    """

    example: ClassVar[str] = "plot runs/FetchPush-v4/*/* --axis minutes --out push.png"

    runs: Runs = ()
    """Run directories (also of runs still going), latest, or copies of metrics.csv."""
    metric: tuple[str, ...] = ()
    """Columns of metrics.csv, a panel each; default eval/success_rate, where the runs have it, else
    eval/object_comotion_m. Runs go before it."""
    axis: Literal["steps", "minutes"] = "steps"
    """What curves are drawn over."""
    out: Path = Path("curves.png")
    """A .png, .svg or .pdf file."""
    each: bool = False
    """One line a run, without bands; else of several runs of one seed the longest is drawn."""
    allow_import: bool = False
    """Let runs import the modules of your own recipes that they name."""

    def act(self) -> int:
        """Draws the curves."""
        if not self.runs:
            _refuse_runs(self.metric)
        sources, files = _several("plot", self.runs, _curve)
        paths = {os.path.realpath(path): path for path in sources}.values()  # each run once
        _allow_recipes(self.allow_import, paths)
        from music_tf.tools.curves import (  # noqa: PLC0415 - numpy
            FORMATS,
            REPEATED,
            by_settings,
            draw_curves,
            left_out,
            load_begun,
            without_repeats,
        )

        out = _file(self.out, FORMATS)
        begun, early, damaged = load_begun(list(paths))
        runs, repeats = (begun, []) if self.each else without_repeats(by_settings(begun))
        _refuse_runs(name for name in self.metric if not any(name in run.columns for run in runs))
        metrics = draw_curves(runs, self.metric, self.axis, out, self.each)
        _say_left_out("no run directory and no CSV file", files)
        _say_left_out("no epoch yet", early)
        _say_left_out("damaged, plot it alone to see where", damaged)
        _say_left_out(REPEATED, repeats)
        for lack, labels in left_out(runs, metrics, self.axis).items():
            _say_left_out(lack, labels)
        sys.stdout.write(f"{out}\n")
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report(Verb):
    """Writes one page that holds everything: settings, learning curves, tables, paths, films.

    It needs no network. What is no run or is damaged is named and left out. Films are those of
    RUN/videos, which music-tf play makes.
    """

    example: ClassVar[str] = "report latest"

    runs: Runs = ()
    """Run directories (also of runs still going), or latest."""
    out: Path = Path("report.html")
    """An .html file."""
    allow_import: bool = False
    """Let runs import the modules of your own recipes that they name."""

    def act(self) -> int:
        """Writes the page."""
        runs, files = _several("report", self.runs, find_run)
        _allow_recipes(self.allow_import, runs)
        from music_tf.tools.report import FORMATS, write_report  # noqa: PLC0415 - numpy

        damaged = write_report(runs, _file(self.out, FORMATS))
        _say_left_out("no run directory", files)
        _say_left_out("damaged, report it alone to see where", damaged)
        sys.stdout.write(f"{self.out}\n")
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipes(Verb):
    """Lists the recipes: a table on a terminal, one name a line where the output goes elsewhere.

    music-tf train RECIPE --help shows every setting of one.
    """

    example: ClassVar[str] = "recipes"

    def act(self) -> int:
        """Lists the recipes."""
        if not sys.stdout.isatty() or launched_world_size() > 1:  # mpirun fakes a terminal
            sys.stdout.write("".join(f"{name}\n" for name in recipes.names()))
            return EXIT_DONE
        from rich.console import Console  # noqa: PLC0415 - slow, and off a terminal not needed
        from rich.table import Table  # noqa: PLC0415

        table = Table("recipe", "what it does", "workers", "episodes per epoch", box=None)
        for name in recipes.names():
            presets = [recipes.resolve(name, preset) for preset in recipes.PRESETS]
            workers = ", ".join(str(config.workers) for config in presets)
            sizes = [config.workers * config.rollouts * config.cycles for config in presets]
            table.add_row(name, recipes.describe(name), workers, ", ".join(map(str, sizes)))
        console = Console()
        console.print(table)
        console.print(f"numbers are for the presets {', '.join(recipes.PRESETS)}", style="dim")
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckEnv(Verb):
    """Makes an environment, plays it with random actions, and says what training cannot handle."""

    example: ClassVar[str] = "check-env FetchPush-v4"

    id: Annotated[str, POSITIONAL, arg(metavar="ID")]
    """A known environment, or module:Id for your own."""

    def act(self) -> int:
        """Prints every check and returns 0, or 3 if any found a fault."""
        env_id = check_env_id(self.id)
        from music_tf.tools.check_env import check_environment  # noqa: PLC0415 - numpy, MuJoCo

        findings = list(check_environment(env_id))
        width = max((len(finding.name) for finding in findings), default=0)
        for finding in findings:
            state = "ok  " if finding.ok else "FAIL"
            sys.stdout.write(f"{state}  {finding.name:{width}}  {finding.detail}\n")
            if not finding.ok and finding.cure:
                sys.stdout.write(f"{'':{width + 6}}  cure: {finding.cure}\n")
        return EXIT_DONE if all(finding.ok for finding in findings) else EXIT_ENVIRONMENT


VERBS: dict[str, type[Verb]] = {
    "evaluate": Evaluate,
    "play": Play,
    "plot": Plot,
    "report": Report,
    "recipes": Recipes,
    "check-env": CheckEnv,
}


def _typed_env_id(typed: str | None, allow_import: bool, run: Path) -> str | None:
    """Returns the environment that the user typed or, where a run is trusted, that of the run."""
    if allow_import:
        allow_recipe(run)
        return stored_env_id(run)
    return None if typed is None else check_env_id(typed)


def _allow_recipes(allowed: bool, runs: Iterable[Path]) -> None:
    for run in runs if allowed else ():
        if run.is_dir():
            allow_recipe(run)


def _several(
    verb: str, texts: Sequence[str], find: Callable[[str], Path]
) -> tuple[list[Path], list[str]]:
    """Returns runs, and the files and folders that are none; refuses a place that is not there."""
    if not texts:
        raise UsageError(
            f"RUN: expected one or more runs, got none\nfor example: music-tf {verb} latest"
        )
    runs: list[Path] = []
    others: dict[str, UsageError] = {}
    for text in texts:
        try:
            runs.append(find(text))
        except UsageError as fault:
            if not os.path.exists(text):
                raise
            others[text] = fault
    if not runs:
        raise next(iter(others.values()))
    return runs, list(others)


def _curve(text: str) -> Path:
    """Returns a CSV file as it is, and a run directory wherever `find_run` finds it."""
    return Path(text) if text.endswith(".csv") else find_run(text)


def _refuse_runs(names: Iterable[str]) -> None:
    """Refuses a run among the names of metrics: `--metric` takes all words that follow."""
    for name in names:
        folder = runs_root() / name
        if name == LATEST or os.path.exists(name) or os.path.isfile(folder / CONFIG_NAME):
            raise UsageError(
                f"--metric: expected names of columns, got the run {name[:200]!r}\n"
                f"put the runs before --metric, as in music-tf plot {name[:200]} --metric NAME"
            )


def _file(path: Path, formats: Sequence[str]) -> Path:
    if path.suffix.lower() not in formats or os.path.isdir(path):
        raise UsageError(
            f"--out: expected a file that ends in {', '.join(formats)}, got {str(path)[:200]!r}"
            + suggestion(path.suffix, formats)
        )
    return path


def _say_left_out(reason: str, runs: list[str]) -> None:
    """Names on standard error what a verb leaves out, where there is anything."""
    if runs:
        sys.stderr.write(f"music-tf: left out, {reason}: {few(runs)}\n")
