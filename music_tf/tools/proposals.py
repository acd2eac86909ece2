"""What `check-env` says of columns, and what to train with them: lines to paste, with minutes."""

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from music_tf import recipes
from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.envs.columns import Certainty, PlayResult, Proposal, listed
from music_tf.envs.kinds import Kind
from music_tf.envs.registry import UNKNOWN, EnvironmentInfo
from music_tf.errors import MusicError, UsageError
from music_tf.reading.command import as_typed, changes_as_typed, parse_train
from music_tf.training.checks import try_environment
from music_tf.types import SplitSpec

_MINUTES = 10.0
"""What a first look may take."""
_TASK, _TASKS, _MUSIC = "sac", "sac_pearl", "ddpg_music"
_HINDSIGHT, _FAST, _SKILLS = "ddpg_her", "ddpg_her_fast", "sac_diayn"
_UPDATE_MS = {_TASK: 6.0, _TASKS: 40.0, _MUSIC: 9.0, _HINDSIGHT: 5.0, _FAST: 11.0, _SKILLS: 8.0}
"""Estimates of what an update takes on one idle core; steps are measured."""
_WIDTH = 24


class CheckedEnv(NamedTuple):
    """An environment as it was checked."""

    env_id: str
    settings: EnvConfig
    info: EnvironmentInfo
    length: int
    pays: str | None
    """What its rewards are; None without goals."""
    bounded: bool = True
    """Whether rewards have bounds that training knows or finds."""
    reward: tuple[float, float] | None = None
    """Lowest and highest reward, if they were measured. A run that computes no rewards does not
    find them, and `evaluate --zero-shot` needs them."""
    rewarded: bool = False
    """Whether what was played got different returns."""
    family: bool = False


def columns_text(played: PlayResult) -> str:
    lines = [f"{played.steps:,} steps in {played.seconds:.0f} s"]
    columns_by_text: dict[str, list[int]] = {kind: [] for kind in Kind if kind in played.kinds}
    for column, text in [*enumerate(played.kinds), *played.relations.items()]:
        columns_by_text.setdefault(text, []).append(column)
    for text, columns in columns_by_text.items():
        lines.append(f"{ranges(columns):{_WIDTH}} {text}")
    if played.fault:
        lines.append(f"an episode broke: {played.fault}")
    return "\n".join(lines)


def world_text(played: PlayResult, info: EnvironmentInfo, env_id: str = "ID") -> str:
    lines = [f"{played.verdict}: {played.why}" if played.why else played.verdict]
    for name, proposal in played.proposed.items():
        lines.append(f"{name} {listed(proposal.columns)}: {proposal.reason}")
    lines += [f"{listed(o)}: another object; name it instead, or beside" for o in played.others]
    if info.split is not None:
        lines.append(_compared(info.split, played))
    elif info.why_no_split != UNKNOWN.why_no_split and "surrounding" not in played.proposed:
        lines.append(f"known: it {info.why_no_split}")
    elif played.verdict in (Certainty.CANNOT_TELL, Certainty.NO_OBJECT):
        lines.append(
            f"if there is an object: music-tf train {_MUSIC} --env-id {env_id} "
            "--world.agent COLUMNS --world.surrounding COLUMNS"
        )
    return "\n".join(lines)


def _compared(split: SplitSpec, played: PlayResult) -> str:
    text = f"known: robot {listed(split.agent)}, surroundings {listed(split.surrounding)}"
    if "surrounding" not in played.proposed:
        return f"{text}; playing shows neither that nor another"
    robot, thing = (set(played.proposed[name].columns) for name in ("agent", "surrounding"))
    if robot <= set(split.agent) and thing <= set(split.surrounding):
        return f"{text}; playing agrees"
    return f"{text}; playing shows other columns: is that split right?"


def next_lines(task: CheckedEnv, played: PlayResult) -> str:
    """Returns what to type for a first look: task, MUSIC, hindsight and skills, as each fits."""
    names = ("agent", "surrounding", "object", "gripper")
    split = _fitting({name: played.proposed[name] for name in names if name in played.proposed})
    skills = {name: each for name, each in played.proposed.items() if name == "descriptor"}
    lines = [f"{played.rate:,.0f} steps a second; updates are estimated for one idle core"]
    if task.rewarded and task.pays is None:
        lines += _line(task, played, _TASK, "the task", ())
    if task.family:
        lines += _line(task, played, _TASKS, "adaptation to new tasks", ())
    if task.info.split is not None or split:
        world = {} if task.info.split is not None else split
        lines += _line(task, played, _MUSIC, "control of the object, without a task", _typed(world))
    if task.pays is not None:
        options = [] if task.bounded else ["--agent.return-clip", "off"]
        recipe = _HINDSIGHT if task.info.split is None else _FAST
        lines += _line(task, played, recipe, f"the task with hindsight, {task.pays}", options)
    bounds = [] if task.reward is None else as_typed({"world.reward": task.reward})
    if task.info.descriptor or task.info.split is not None:
        lines += _line(task, played, _SKILLS, "skills", bounds)
    elif skills:
        what = f"skills, distinguished by {listed(played.proposed['descriptor'].columns)}"
        lines += _line(task, played, _SKILLS, what, [*_typed(skills), *bounds])
    return "\n".join(lines)


def _line(
    task: CheckedEnv, played: PlayResult, recipe: str, what: str, options: Iterable[str]
) -> Iterator[str]:
    """Yields what a recipe is for with its minutes, and the command; or why training refuses it."""
    words = ["music-tf", "train", recipe, "--env-id", task.env_id, *options]
    words += changes_as_typed(task.settings)
    try:
        try_environment(parse_train(words[2:]).config)
    except MusicError as error:
        yield f"{what}: {recipe} is refused, {str(error).splitlines()[0]}"
        return
    epochs, minutes = first_look(recipe, task, played.rate)
    words += ["--epochs", str(epochs)] if epochs else []
    yield f"{what}, about {max(1.0, minutes):.0f} min:"
    yield f"  {shlex.join(words)}"


def first_look(recipe: str, task: CheckedEnv, rate: float) -> tuple[int | None, float]:
    """Returns epochs of at most `_MINUTES`, None for all of them, and the minutes they take."""
    # `rate` is in steps a second of one environment; `recipe` has its default preset.
    config = recipes.resolve(recipe, env_id=task.env_id)
    environments, collect = config.workers * config.rollouts, config.collect
    steps = config.cycles * environments * config.rounds() * (collect.steps or task.length)
    updates = config.cycles * config.updates
    if collect.updates_per_step is not None:
        updates = round(steps * collect.updates_per_step)
    played = steps + config.evaluation.episodes * task.length / config.evaluation.every
    epoch = (played / rate + updates * _UPDATE_MS[recipe] / 1000.0) / 60.0
    fitting = max(1, int(_MINUTES / epoch))
    if fitting >= config.epochs or recipe == _FAST:  # whose task begins late
        return None, epoch * config.epochs
    return fitting, epoch * fitting


def _fitting(proposed: Mapping[str, Proposal]) -> dict[str, Proposal]:
    """Returns what a world takes of what is proposed; a split is taken whole or not at all."""
    split = {name: proposed[name] for name in ("agent", "surrounding") if name in proposed}
    fitting: dict[str, Proposal] = {}
    for part in (split, *({name: proposed[name]} for name in proposed if name not in split)):
        with contextlib.suppress(UsageError):
            World(**{name: each.columns for name, each in part.items()})  # type: ignore[arg-type]
            fitting |= part
    return fitting


def _typed(proposed: Mapping[str, Proposal]) -> list[str]:
    return as_typed({f"world.{name}": each.columns for name, each in proposed.items()})


def ranges(columns: Iterable[int]) -> str:
    """Returns columns with their runs shortened, as in `0-2 5`."""
    runs: list[list[int]] = []
    for column in sorted(columns):
        if runs and column == runs[-1][-1] + 1:
            runs[-1].append(column)
        else:
            runs.append([column])
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
