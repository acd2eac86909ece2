"""Checks of actions, seeds, ends, tasks, stages and columns of a world."""

import contextlib
import dataclasses
from collections.abc import Sequence

import numpy as np

from music_tf.config.changes import OPTION
from music_tf.config.names import few
from music_tf.envs import simulator
from music_tf.envs.columns import played_at_random, share_moved
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.member import one_line
from music_tf.envs.registry import lookup
from music_tf.envs.repeating import (
    STEPS,
    Difference,
    alike,
    first_difference,
    states,
    statistics_of,
)
from music_tf.errors import Finding, MusicError, UsageError
from music_tf.training.environment_trial import OTHER_SEEDS, SEED, EnvironmentTrial
from music_tf.types import Array, Floats

_TASKS = 8
_CORNERS: Sequence[Sequence[float]] = ((-1.0,), (1.0,), (-1.0, 1.0))
"""Corners of the action space: all low, all high, and alternating."""
_MOST = 0.5
"""Largest share of random steps in which surroundings move that the robot has to touch."""


def corners(trial: EnvironmentTrial) -> Finding:
    for ends in _CORNERS:
        trial.envs.reset([0], [SEED])
        action = np.resize(np.array(ends, np.float32), (1, trial.envs.spec.action_dim))
        fault = trial.envs.step(action, [0]).faults[0]
        if fault is not None:
            cure = "take every action of the action space, its bounds included"
            return Finding(f"at {trial.envs.scaled(action)[0]}: {fault}", cure)
    return Finding("actions at their bounds are accepted")


def reset(trial: EnvironmentTrial) -> Finding:
    """Checks that a seed repeats its episode, else whether it does in a new environment."""
    try:
        differs = _difference(trial, remake=trial.settings.remake)
    except MusicError as error:
        detail = f"two of them side by side fail: {one_line(error)}"
        cure = "train with --workers 1 --rollouts 1; families of tasks need one that bears others"
        return Finding(detail, cure, warning=True)
    if differs is None:
        return Finding("the same seed gives the same episode, bit for bit")
    what = "rewards" if differs.of_rewards else "episodes"
    detail = f"with the same seed, {what} differ from step {differs.step} on"
    if statistics := statistics_of(trial.envs.environment):
        return Finding(f"{detail}{statistics[0]}", statistics[1])
    cure = (
        "restore everything in reset(seed=...), draw only from self.np_random, and share nothing "
        "with other environments of the process"
    )
    if _difference(trial, remake=True) is None:
        cure = "--env.remake True makes a new one for each episode, which repeats itself"
    return Finding(detail, cure)


def _difference(trial: EnvironmentTrial, remake: bool) -> Difference | None:
    settings = dataclasses.replace(trial.settings, remake=remake)
    with contextlib.closing(LockstepEnvs(trial.env_id, 2, settings)) as envs:
        envs.mute_faults()
        return first_difference(envs)


def copies(trial: EnvironmentTrial) -> Finding:
    """Compares an episode of one seed in two copies of the environment."""
    with contextlib.suppress(MusicError):  # another check reports what breaks
        other = LockstepEnvs(trial.env_id, 1, trial.settings)
        with contextlib.closing(other):
            envs = trial.envs, trial.envs, other
            first, again, beside = (list(states(each, SEED, STEPS)) for each in envs)
        if alike(first, again) and not alike(first, beside):
            text = "two copies of the environment play different episodes under one seed, so "
            text += "evaluation, film and resume are in other worlds than training"
            return Finding(text, "draw in reset, from self.np_random, not before", warning=True)
    return Finding("two copies play the same episode under one seed")


def time_limit(trial: EnvironmentTrial) -> Finding:
    """Looks for a limit of time that comes as termination: all episodes terminate at one step."""
    steps, longest, seeds = trial.length, trial.envs.spec.max_episode_steps, OTHER_SEEDS[:4]
    episodes = (list(states(trial.envs, seed, longest)) for seed in seeds)
    ended = bool(trial.episode.terminated[0]) and steps > 1
    if not ended or not all(len(each) == steps + 1 and each[-1][-2] for each in episodes):
        return Finding("time ends no episode as termination")
    text = f"{len(seeds) + 1} episodes of random actions all terminate at step {steps}: is "
    text += "that a limit of time? What comes after it then counts as nothing"
    return Finding(text, "return truncated=True there, not terminated", warning=True)


def family(trial: EnvironmentTrial) -> Finding:
    """Plays one seed and the same actions under two tasks of a family, each twice."""
    envs, longest = trial.envs, trial.envs.spec.max_episode_steps
    if trial.has_goals or not envs.is_family:
        return Finding("")
    tasks = envs.sample_tasks(_TASKS, np.random.default_rng(SEED))

    def played(task: Floats) -> list[Array]:
        return list(states(envs, SEED, longest, task=task))

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


def stages(trial: EnvironmentTrial) -> Finding:
    """Plays the same actions in each stage of a changing world, last in the first one."""
    envs, worlds = trial.envs, [each._replace(at={}) for each in trial.settings.stages]
    episodes: dict[int, list[Array]] = {}
    if worlds:
        envs.reset([0], [SEED])  # refuses a world that cannot change at all
    for number in reversed(range(len(worlds))):
        envs.set_world(number)
        try:
            episodes[number] = list(states(envs, SEED, envs.spec.max_episode_steps))
        except UsageError as error:
            return Finding(str(error), "let reset keep what a stage has set")
    changed = (number for number in episodes if worlds[number] != worlds[0])
    unchanged = [str(number) for number in changed if alike(episodes[number], episodes[0])]
    if not unchanged:
        return Finding("each changes episodes" if worlds else "")
    text = f"{OPTION}: {len(episodes[0]) - 1} random steps in stage {few(unchanged)} are those in "
    text += "stage 0, bit for bit: what changes has no effect on them"
    cure = "if the constructor reads it, let reset read it; else it may concern other steps"
    return Finding(text, cure, warning=True)


def split(trial: EnvironmentTrial) -> Finding:
    """Asks about the user's surroundings that move in most random steps, as the robot does."""
    declared = trial.envs.spec.split
    if declared is None or declared == lookup(trial.env_id).split:
        return Finding("")
    try:
        episodes = played_at_random(trial.envs)
    except MusicError:  # training will report it
        return Finding("")
    simulator.take_warnings()
    if not any(len(rows) > 1 for rows in episodes):
        return Finding("")
    cure = f"music-tf check-env {trial.env_id} shows what each column does"
    halves = declared.agent, declared.surrounding
    robot, things = (few(list(map(str, columns))) for columns in halves)
    if not any(np.ptp(rows[:, list(declared.agent)], axis=0).any() for rows in episodes):
        return Finding(
            f"expected columns of the robot that actions move, got {robot}, which stay as they are "
            f"in {len(episodes)} episodes of random actions",
            cure,
        )
    share = share_moved(episodes, declared.surrounding)
    if share <= _MOST:
        return Finding("the surroundings rest in most random steps")
    return Finding(
        f"the surroundings (columns {things}) move in {share:.0%} of random steps; is that split "
        "right? It is if they are held or move by themselves, and wrong if they are the robot's",
        cure,
        warning=True,
    )
