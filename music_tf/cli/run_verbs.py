"""The verbs about runs: their options, and the functions that they call.

A verb imports heavy modules only after its command line has been read.
"""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from music_tf.config.changes import LEARNED, NOW
from music_tf.config.conditioning import BOTH, Visited
from music_tf.config.fields import In, Settings
from music_tf.config.names import check_env_id, few, nearest
from music_tf.config.values import JsonObject
from music_tf.config.warm_start import parse_parts, parts_of
from music_tf.config.world import load_function, trust
from music_tf.errors import EXIT_DONE, ModuleNotAllowed, UsageError
from music_tf.process.tensorflow_start import prepare_tensorflow
from music_tf.reading import stored
from music_tf.reading.options import Flag, Options
from music_tf.storage.run_paths import film_path, find_agent, find_run, place_of

_DATASET = re.compile(r"[\w-]+(/[\w-]+)*-v\d+", re.ASCII)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verb(Options):
    """A verb with its options."""

    def act(self) -> int:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunVerb(Verb):
    """A verb about the policy of one run."""

    run: Annotated[str, tyro.conf.Positional] = tyro.MISSING
    """A run directory, latest, or an agent of the package such as push; a path wins over a name."""
    env_id: str | None = None
    """Your own environment, as module:Id; what a run names is not imported without consent."""
    allow_import: Flag = False
    """Let the run import the modules of your own that it names: recipe, environment, functions. In
    place of it, $MUSIC_TF_ALLOW_IMPORT=my_robot,lab allows modules by name."""

    def run_and_env_id(self) -> tuple[Path, str | None]:
        run = find_agent(self.run)
        env_id = None if self.env_id is None else check_env_id(self.env_id)
        if self.allow_import:
            env_id = stored.allowed_env_id(run, env_id)
        return run, env_id


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnvOverrides(Settings):
    """Changes to the environment in which a run is measured."""

    name: ClassVar[str] = "env"

    kwargs: JsonObject = "{}"
    """Arguments of the environment's constructor beside those of the run, as in
    {"broken_joint": 3}; the file that is written has them in its name."""
    max_episode_steps: Annotated[int | None, In(1, 10**6)] = None
    """Steps of an episode; unset: as in the run, with play --path 150."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayingVerb(RunVerb):
    """A verb that plays a run, in its own environment or under other conditions."""

    stage: str = NOW
    """Which stage of a changing world (env.changes) to play in: a number from 0, `now` for the one
    that training has reached, or `learned` for the one in which each skill was learned."""
    env: EnvOverrides = dataclasses.field(default_factory=EnvOverrides)

    @property
    def env_overrides(self) -> str:
        """Returns other arguments of the environment as JSON; empty without any."""
        steps = self.env.max_episode_steps or (150 if getattr(self, "path", "") else None)
        changed = json.loads(self.env.kwargs) | ({"max_episode_steps": steps} if steps else {})
        return json.dumps(changed) if changed else ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunsVerb(Verb):
    """A verb that shows what runs have written."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Run directories, of running ones too, or latest; plot takes copies of metrics.csv."""
    allow_import: Flag = False
    """Let runs import the modules of your own recipes that they name."""

    def folders(self, find: Callable[[str], Path]) -> tuple[list[Path], list[str]]:
        """Returns the runs, each once, and the files and folders that are no runs."""
        if not self.runs:
            raise UsageError(
                "RUN: expected one or more runs, got none\n"
                f"for example: music-tf {self.example.partition(' ')[0]} latest"
            )
        runs: dict[str, Path] = {}
        others: dict[str, UsageError] = {}
        for text in self.runs:
            try:
                path = find(text)
                runs[os.path.realpath(path)] = path
            except UsageError as fault:
                if not os.path.exists(text):
                    raise
                others[text] = fault
        if not runs:
            raise next(iter(others.values()))
        for path in runs.values():
            if self.allow_import and path.is_dir():
                stored.allow_modules(path)
        return list(runs.values()), list(others)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate(PlayingVerb):
    """Plays the latest policy of a run without exploration.

    Writes a table of its success rate and behaviour, and RUN/evaluation.json; under --env.kwargs,
    --tasks or --explore a file beside it. --export and --onnx alone only export.
    """

    example: ClassVar[str] = "evaluate latest"

    episodes: Annotated[int | None, In(1, 10**6)] = None
    """How many episodes, default 100; of a run that adapts to tasks, how many visits to each,
    default 20."""
    tasks: Visited = BOTH
    """Tasks to visit, in a run that adapts to tasks: those kept for evaluation, those of training,
    or both."""
    explore: Annotated[int | None, In(1, 10**4)] = None
    """Episodes under the prior before a belief is inferred, in a run that adapts to tasks; unset:
    as in the run (tasks.explore)."""
    full: Flag = False
    """Judge control too: coverage, contact, spread, information between robot and object
    (docs/metrics.md explains them); takes a minute or two longer. For a run that adapts to tasks:
    how well the belief predicts the task, and whether a visit depends on other tasks."""
    zero_shot: Flag = False
    """Measure the share of the environment's goals, none seen in training, that the policy reaches:
    by its embedding (docs/goals.md), or by the skill that ends nearest. Unknown ends of skills
    are measured first, as by music-tf skills RUN."""
    out: Path | None = None
    """An .npz file for the episodes of the policy, as plain arrays."""
    minari: str | None = None
    """Write them as a Minari dataset with an id such as push/music-v0."""
    export: Path | None = None
    """A folder for the weights in --parts, small enough to commit: train --init-from takes it, and
    with actor and normalizer in it play, evaluate and load_policy do."""
    parts: str | None = None
    """With --export: what to put there, as in actor,normalizer; with both of them the folder also
    gets an embedding for --reach, if any, and FOLDER/robot the policy as one file of Python that
    needs numpy alone."""
    onnx: Path | None = None
    """An .onnx file for the policy with the normalisation of its inputs; needs the extra onnx."""
    overwrite: Flag = False
    """Replace an evaluation.json with more episodes of the same checkpoint, too."""

    def act(self) -> int:
        run, env_id = self.run_and_env_id()
        if self.out is not None and not os.path.isdir(_file("--out", self.out, (".npz",)).parent):
            raise UsageError(f"--out: expected a folder, got {str(self.out.parent)[:200]!r}")
        if self.minari is not None and not _DATASET.fullmatch(self.minari):
            raise UsageError(
                f"--minari: expected an id such as push/music-v0, got {self.minari[:80]!r}"
            )
        if (self.export is None) is not (self.parts is None):
            raise UsageError(
                "--export: expected a folder for weights and --parts beside it, got "
                f"{str(self.export)[:200]!r} and {self.parts!r:.80}\n"
                "for example: --export FOLDER --parts actor,normalizer; episodes go to --out A.npz"
            )
        onnx = None if self.onnx is None else _file("--onnx", self.onnx, (".onnx",))
        if self.full and self.tasks != BOTH:
            raise UsageError(
                "--full: the probe of beliefs is fitted on training tasks and judged on test "
                f"tasks: expected --tasks {BOTH}, got {self.tasks}"
            )
        prepare_tensorflow()
        from music_tf.runs.inspection import ExtraMeasures, evaluate_run  # noqa: PLC0415 - numpy, MuJoCo
        from music_tf.runs.loaded_run import load_run, visiting  # noqa: PLC0415 - numpy, MuJoCo
        from music_tf.tools.adaptation_pictures import draw_visits  # noqa: PLC0415 - Pillow
        from music_tf.tools.export import exporter  # noqa: PLC0415 - the same

        if onnx is not None:
            from music_tf.storage.loading import load_policy  # noqa: PLC0415 - the same
            from music_tf.tools.portable import write_onnx  # noqa: PLC0415 - the same

            write_onnx(load_policy(run, stored.stored_env_id(run)), onnx)
            sys.stdout.write(f"written: {onnx}\n")
        if self.export is not None and self.parts is not None:
            self._export_weights(run, self.export, self.parts)
        measured = (self.episodes, self.full, self.zero_shot, self.out, self.minari, self.overwrite)
        played = (self.stage != NOW, self.env_overrides, self.tasks != BOTH, self.explore)
        if (onnx or self.export) and not any(measured + played):
            return EXIT_DONE
        export = exporter(self.out, self.minari)
        loaded = load_run(run, env_id, env_overrides=self.env_overrides, stage=self.stage)
        evaluate_run(
            visiting(loaded, self.tasks, self.explore),
            self.episodes,
            extras=ExtraMeasures(self.full, self.zero_shot, self.overwrite),
            export=export,
            draw=draw_visits,
        )
        return EXIT_DONE

    def _export_weights(self, run: Path, folder: Path, parts: str) -> None:
        from music_tf.networks.embedding import PHI, Embedding  # noqa: PLC0415 - numpy
        from music_tf.storage.checkpoint import weights_of  # noqa: PLC0415 - the same
        from music_tf.storage.loading import load_policy  # noqa: PLC0415 - the same
        from music_tf.storage.warm_start import ROBOT, export_weights  # noqa: PLC0415 - the same
        from music_tf.tools.portable import write_robot  # noqa: PLC0415 - the same

        env_id = stored.stored_env_id(run)
        trained = stored.read_run(run, env_id)
        learns = [type(trained.config.agent), *map(type, trained.config.rewards.values())]
        chosen = parse_parts(parts, parts_of(learns))
        policy = load_policy(run, env_id) if {"actor", "normalizer"} <= set(chosen) else None
        if policy is not None and isinstance(policy.embedding, Embedding):
            chosen = tuple(dict.fromkeys((*chosen, PHI)))  # for `reach`
        export_weights(weights_of(run), folder, chosen, trained)
        sys.stdout.write(f"written: {folder}\n")
        if policy is not None:
            write_robot(policy, folder / ROBOT)
            sys.stdout.write(f"written: {folder / ROBOT}, which needs numpy alone\n")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Play(PlayingVerb):
    """Films the latest policy of a run without exploration, or shows it live in a window."""

    example: ClassVar[str] = "play latest --out push.gif"

    episodes: Annotated[int, In(1, 1000)] = 4
    """How many episodes, of each skill."""
    skill: str = "all"
    """Skills to film, counted from 0: one, several as in 0,2,7, or all."""
    reach: Annotated[tuple[float, ...] | None, In(-1e9, 1e9)] = None
    """Where to go, as in 1.3 0.8 for x and y of a block: values of what an embedding sees, or of
    what skills are distinguished by (docs/goals.md). The goal is drawn."""
    zero_shot: Flag = False
    """Go to the environment's own goals, none seen in training, and stop at the distance that
    evaluate --zero-shot has measured."""
    path: str = ""
    """Follow a goal that moves at half the speed v of an agent whose conditions are a ball: on a
    circle, a square or an eight, or along the points of a .csv file, with rows as for --reach; if
    the last point equals the first, again and again."""
    beside: Literal["random"] | None = None
    """Show beside them the same episodes with other actions."""
    live: Flag = False
    """Open the environment's own window, in place of a film; needs a screen."""
    stage: str = LEARNED
    out: Path | None = None
    """An .mp4 or .gif file; default RUN/videos/policy.mp4, of an agent runs/NAME.mp4."""
    strip: Path | None = None
    """A .png to draw in place of a film: moments of one episode side by side, a row a skill."""
    episode: Annotated[int | None, In(1, 10**6)] = None
    """With --strip: which episode, from 1; default 1."""
    frames: Annotated[int | None, In(2, 1000)] = None
    """With --strip: how many moments; default 6."""

    def act(self) -> int:
        run, env_id = self.run_and_env_id()
        if self.skill != "all" and not re.fullmatch("[0-9]{1,4}(,[0-9]{1,4})*", self.skill):
            raise UsageError(
                "--skill: expected skills counted from 0, as in 3 or 0,2,7, or all; got "
                f"{self.skill[:80]!r}"
            )
        aims = sum(map(bool, (self.reach, self.zero_shot, self.path)))
        refusals = {
            "--episode, --frames: expected with --strip; films have --episodes": self.strip is None
            and (self.episode or self.frames),
            "--strip: replaces the film; leave out --out": self.strip and self.out,
            "--strip: shows one episode; expected --episode, not --episodes": self.strip
            and self.episodes != type(self).episodes,
            "--live: opens a window; leave out --out, --strip and --beside": self.live
            and (self.out or self.strip or self.beside),
            "--reach: expected where to go, as in 1.3 0.8; got no number": self.reach == (),
            "--reach: sets the goal, as --zero-shot and --path do; leave one out": aims > 1,
            "--skill: the goal decides which skill acts; leave it out": aims
            and self.skill != "all",
        }
        for text in (text for text, wrong in refusals.items() if wrong):
            raise UsageError(text)
        out = _file("--out", self.out or film_path(run), (".mp4", ".gif"))
        episodes = range(self.episodes)
        if self.strip is not None:
            out = _file("--strip", self.strip, (".png",))
            first = (self.episode or 1) - 1
            episodes = range(first, first + 1)
        prepare_tensorflow()
        from music_tf.tools.film import Aim, play, show  # noqa: PLC0415 - numpy, MuJoCo

        shown: Sequence[int] | Aim = []  # all skills
        if aims:
            shown = Aim(self.reach or (), self.path)
        elif self.skill != "all":
            shown = [int(number) for number in self.skill.split(",")]
        where = {"stage": self.stage, "env_overrides": self.env_overrides}
        if self.live:
            show(run, episodes, shown, env_id, **where)
        else:
            where |= {"beside": self.beside or ""}
            play(run, out, episodes, shown, self.frames or 6, env_id, **where)
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Skills(PlayingVerb):
    """Plays each skill of a run on the same episodes, and compares the skills.

    Shows the effective number of skills (exp of the entropy of the prior that prefers recognised
    skills), which skills are mistaken for which, the distances of their ends, the share of the
    variance that lies between skills, and the best skill for the task's own reward or --reward.
    Writes a table, RUN/skills.json and RUN/videos/skills.png, which music-tf report shows.
    """

    example: ClassVar[str] = "skills latest --episodes 10"

    episodes: Annotated[int, In(1, 10**5)] = 10
    """Episodes of each skill."""
    only: tuple[int, ...] = ()
    """Skills to measure, counted from 0; by default all. The files have their numbers in the
    name."""
    reward: str | None = None
    """Another reward for the comparison, as module:function of yours, which takes the
    observations [T, O], actions [T, A] in [-1, 1] and next observations [T, O] of an episode, and
    returns [T]. The files that are written have its name in theirs."""

    def act(self) -> int:
        run, env_id = self.run_and_env_id()
        reward = None
        if self.reward is not None:
            if ":" not in self.reward:
                raise UsageError(
                    f"--reward: expected module:function, got {self.reward[:80]!r}\n"
                    "for example: --reward my_rewards:upright, from my_rewards.py in this folder"
                )
            trust([self.reward])  # since the user typed it
            reward = (self.reward, load_function(self.reward, "--reward"))
        from music_tf.runs.loaded_run import load_run  # noqa: PLC0415 - numpy, MuJoCo
        from music_tf.runs.skills import show_skills  # noqa: PLC0415 - the same
        from music_tf.storage.skill_ends import SKILLS_NAME  # noqa: PLC0415 - the same
        from music_tf.tools.skill_pictures import draw_skills  # noqa: PLC0415 - the same

        loaded = load_run(run, env_id, env_overrides=self.env_overrides, stage=self.stage)
        part = " ".join(("only", *map(str, self.only))) if self.only else ""
        path = loaded.file(SKILLS_NAME, f"{part} {self.reward or ''}")
        with contextlib.closing(loaded.envs):
            followed = show_skills(loaded, path, self.episodes, self.only, reward)
        picture = path.with_suffix(".png")
        out = run / "videos" / picture.name if path.parent == run else picture
        draw_skills(loaded.here / run, followed, loaded.here / out)
        sys.stdout.write(f"{out}\n")
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot(RunsVerb):
    """Draws learning curves.

    Runs that differ in their seed alone share a line, the interquartile mean, with a 95 % bootstrap
    band from five seeds on; each seed is drawn thinly behind. Copies of a metrics.csv in one folder
    belong together, and so does CONDITION_seedN.csv for each condition. What cannot be drawn is
    named and left out.
    """

    example: ClassVar[str] = "plot runs/FetchPush-v4/*/* --axis minutes --out push.png"

    metric: tuple[str, ...] = ()
    """Columns of metrics.csv, a panel each; default the first that a run has of eval/success_rate,
    eval/object_comotion_m, eval/information, eval/return and train/mean_q. Runs go before it."""
    axis: Literal["steps", "minutes", "episodes"] = "steps"
    """What curves are drawn over; episodes: of tasks without goals."""
    out: Path | None = None
    """A .png, .svg or .pdf file; default curves.png in the run, of several runs in runs/."""
    each: Flag = False
    """One colour a run, without bands; else of several runs of one seed the longest is drawn."""

    def act(self) -> int:
        if not self.runs:
            _refuse_runs(self.metric)
        paths, files = self.folders(
            lambda text: Path(text) if text.endswith(".csv") else find_run(text)
        )
        from music_tf.tools import curves  # noqa: PLC0415 - numpy

        out = _file("--out", self.out or place_of("curves.png", paths), curves.FORMATS)
        runs, early, unread = curves.load_begun(paths)
        repeats: list[str] = []
        if not self.each:
            runs, repeats = curves.without_repeats(curves.by_settings(runs))
        _refuse_runs(name for name in self.metric if not any(name in run.columns for run in runs))
        metrics = curves.draw_curves(runs, self.metric, self.axis, out, self.each)
        _say_left_out("no run directory and no CSV file", files)
        _say_left_out("no epoch yet", early)
        _say_unread("plot", unread)
        _say_left_out(curves.REPEATED, repeats)
        for lack, labels in curves.left_out(runs, metrics, self.axis).items():
            _say_left_out(lack, labels)
        sys.stdout.write(f"{out}\n")
        return EXIT_DONE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report(RunsVerb):
    """Writes one page that holds everything: settings, learning curves, tables, paths, films.

    It needs no network. Other folders and damaged runs are named and left out. Films are those of
    RUN/videos, which music-tf play makes.
    """

    example: ClassVar[str] = "report latest"

    out: Path | None = None
    """An .html file; default report.html in the run, of several runs in runs/."""

    def act(self) -> int:
        runs, files = self.folders(find_run)
        from music_tf.tools.report import FORMATS, write_report  # noqa: PLC0415 - numpy

        out = _file("--out", self.out or place_of("report.html", runs), FORMATS)
        unread = write_report(runs, out)
        _say_left_out("no run directory", files)
        _say_unread("report", unread)
        sys.stdout.write(f"{out}\n")
        return EXIT_DONE


def _refuse_runs(names: Iterable[str]) -> None:
    """Refuses a run among the names of metrics, since `--metric` takes all words that follow."""
    for name in names:
        config = stored.runs_root() / name / stored.CONFIG_NAME
        if name == stored.LATEST or os.path.exists(name) or os.path.isfile(config):
            raise UsageError(
                f"--metric: expected names of columns, got the run {name[:200]!r}\n"
                "put the runs before --metric, as in "
                f"music-tf plot {shlex.quote(name[:200])} --metric NAME"
            )


def _file(option: str, path: Path, formats: Sequence[str]) -> Path:
    if os.path.isdir(path):
        raise UsageError(f"{option}: expected a file, got the folder {str(path)[:200]!r}")
    if path.suffix.lower() not in formats:
        raise UsageError(
            f"{option}: expected a file that ends in {', '.join(formats)}, got {str(path)[:200]!r}"
            f"\ndid you mean {nearest(path.suffix, formats) or formats[0]}?"
        )
    return path


def _say_unread(verb: str, faults: Mapping[str, UsageError]) -> None:
    """Lists on standard error the runs that need --allow-import, and those that are damaged."""
    closed = [path for path, fault in faults.items() if isinstance(fault, ModuleNotAllowed)]
    _say_left_out("it names a module of yours, add --allow-import", closed)
    damaged = [path for path in faults if path not in closed]
    _say_left_out(f"damaged, {verb} it alone to see where", damaged)


def _say_left_out(reason: str, runs: list[str]) -> None:
    if runs:
        sys.stderr.write(f"music-tf: left out, {reason}: {few(runs)}\n")
