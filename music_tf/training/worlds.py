"""Rows about copies, ends, tasks and stages of a world, and its columns, before training."""

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from music_tf.config.changes import OPTION
from music_tf.config.names import few
from music_tf.config.settings import Config
from music_tf.envs import simulator
from music_tf.envs.columns import played_at_random, share_moved
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import lookup
from music_tf.envs.repeating import STEPS, alike, states, statistics_of
from music_tf.errors import EnvironmentFault, Finding, MusicError, UsageError
from music_tf.training import observed
from music_tf.types import Array, Floats

if TYPE_CHECKING:
    from music_tf.training.rehearsal import Rehearsal

_SEED, _TASKS = 0, 8
_OTHER_SEEDS = range(1, 5)
_MOST = 0.5
"""Largest share of random steps in which surroundings move that the robot has to touch."""


def copies(stage: "Rehearsal") -> Finding:
    """Compares an episode of one seed in two copies of the environment."""
    with contextlib.suppress(MusicError):  # another check reports what breaks
        other = LockstepEnvs(stage.env_id, 1, stage.settings)
        with contextlib.closing(other):
            copied = stage.envs, stage.envs, other
            first, again, beside = (list(states(envs, _SEED, STEPS)) for envs in copied)
        if alike(first, again) and not alike(first, beside):
            text = "two copies of the environment play different episodes under one seed, so "
            text += "evaluation, film and resume are in other worlds than training"
            return Finding(text, "draw in reset, from self.np_random, not before", warning=True)
    return Finding("the same seed gives the same episode, bit for bit")


def time_limit(stage: "Rehearsal") -> Finding:
    """Looks for a limit of time that comes as termination: all episodes terminate at one step."""
    steps, longest = int(stage.episode.length[0]), stage.envs.spec.max_episode_steps
    episodes = (list(states(stage.envs, seed, longest)) for seed in _OTHER_SEEDS)
    ended = bool(stage.episode.terminated[0]) and steps > 1
    if not ended or not all(len(each) == steps + 1 and each[-1][-2] for each in episodes):
        return Finding("time ends no episode as termination")
    text = f"{len(_OTHER_SEEDS) + 1} episodes of random actions all terminate at step {steps}: is "
    text += "that a limit of time? What comes after it then counts as nothing"
    return Finding(text, "return truncated=True there, not terminated", warning=True)


def family(stage: "Rehearsal") -> Finding:
    """Plays one seed and the same actions under two tasks of a family, each twice."""
    envs, longest = stage.envs, stage.envs.spec.max_episode_steps
    if envs.spec.goal_dim or not envs.is_family:
        return Finding("")
    tasks = envs.sample_tasks(_TASKS, np.random.default_rng(_SEED))

    def played(task: Floats) -> list[Array]:
        return list(states(envs, _SEED, longest, task=task))

    first = played(tasks[0])
    others = ((task, episode) for task in tasks[1:] if not alike(episode := played(task), first))
    task, episode = next(others, (None, first))
    if task is None:
        equal, paid = (tasks == tasks[0]).all(), np.ptp([each[-1] for each in first[1:]])
        sparse = bool(not equal and paid == 0.0)
        text = f"{_TASKS} tasks give the same {len(first) - 1} random steps, bit for bit: they "
        text += "have no effect" + ", or rewards are too sparse for random actions" * sparse
        cure = "draw different tasks, let reset keep what set_task sets, and step pay for it"
        return Finding(text, cure, warning=sparse)
    again, last = played(task), played(tasks[0])
    if alike(again, episode) and alike(last, first):
        return Finding(f"tasks change episodes and repeat them, {len(first) - 1} random steps")
    if alike(last, again):
        return Finding("a task takes effect one reset late", "let set_task hold at the next reset")
    fault, cure = statistics_of(envs.environment) or ("", "restore everything in reset(seed=...)")
    return Finding(f"a task does not repeat its episode of one seed{fault}", cure, warning=True)


def stages(stage: "Rehearsal") -> Finding:
    """Plays the same actions in each stage of a changing world, last in the first one."""
    envs, worlds = stage.envs, [each._replace(at={}) for each in stage.settings.stages]
    episodes: dict[int, list[Array]] = {}
    for number in reversed(range(len(worlds))):
        envs.set_world(number)
        try:
            episodes[number] = list(states(envs, _SEED, envs.spec.max_episode_steps))
        except UsageError as error:
            return Finding(str(error), "let reset keep what a stage has set")
    changed = (number for number in episodes if worlds[number] != worlds[0])
    same = [str(number) for number in changed if alike(episodes[number], episodes[0])]
    if not same:
        return Finding("each changes episodes" if worlds else "")
    text = f"{OPTION}: {len(episodes[0]) - 1} random steps in stage {few(same)} are those in stage "
    text += "0, bit for bit: what changes has no effect on them"
    cure = "if the constructor reads it, let reset read it; else it may concern other steps"
    return Finding(text, cure, warning=True)


ROWS: Mapping[str, Callable[["Rehearsal"], Finding]] = {
    **observed.ROWS,
    **{"time limit": time_limit, "family": family},
}


def findings(stage: "Rehearsal", visits_tasks: bool) -> Iterator[Finding]:
    """Yields the results of all rows, of a family only if its tasks are visited."""
    yield stages(stage)
    yield copies(stage)
    yield from (row(stage) for row in ROWS.values() if visits_tasks or row is not family)


def asked_of_split(config: Config) -> tuple[str, ...]:
    """Returns a warning if the user's columns of the surroundings move in most random steps.

    Such columns may belong to the robot, and joint motion would then be paid from the start.
    """
    if not any(term.needs_split for term in config.rewards.values()):
        return ()
    split, episodes = None, []
    with streams_kept(), contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(MusicError))  # training will report it
        envs = LockstepEnvs(config.env_id, 1, config.env, world=config.world)
        stack.callback(envs.close)
        envs.hush()
        split = envs.spec.split
        if split is None or split == lookup(config.env_id).split:
            return ()
        episodes = played_at_random(envs)
        simulator.take_warnings()
    if split is None or not any(len(rows) > 1 for rows in episodes):
        return ()
    cure = f"music-tf check-env {config.env_id} shows what each column does"
    if not any(np.ptp(rows[:, list(split.agent)], axis=0).any() for rows in episodes):
        named = few([str(column) for column in split.agent])
        raise EnvironmentFault(
            f"{config.env_id}: expected columns of the robot that actions move, got {named}, "
            f"which stay as they are in {len(episodes)} episodes of random actions\n{cure}"
        )
    share = share_moved(episodes, split.surrounding)
    if share <= _MOST:
        return ()
    named = few([str(column) for column in split.surrounding])
    return (
        f"{config.env_id}: the surroundings (columns {named}) move in {share:.0%} of random steps; "
        "is that split right? It is if they are held or move by themselves, and wrong if they are "
        f"the robot's\n{cure}",
    )


@contextlib.contextmanager
def streams_kept() -> Iterator[None]:
    """Restores the global random states of Python and numpy, which user code may draw from."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
