"""Plays evaluation episodes and takes a picture of each state."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.envs.lockstep import Steps
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.rollout import Conditions
from music_tf.training.evaluation import evaluation_conditions
from music_tf.training.inspection import LoadedRun


class Shot(NamedTuple):
    """Which episode is filmed."""

    episode: int
    """Index in the evaluation protocol, from 0."""
    skill: int


class View(NamedTuple):
    """One episode at one time."""

    image: npt.NDArray[np.uint8]  # [height, width, 3]
    step: int
    success: bool


def film(loaded: LoadedRun, shots: Sequence[Shot]) -> Iterator[list[View]]:
    """Plays episodes side by side, under the goals of training, and shows each of their states.

    Args:
        loaded: The run; must have an environment for each shot.
        shots: What to film.

    Yields:
        A view of each shot: the first states, then those after each step. Episodes that are
        over stand still, and when all of them are, the film ends.

    Raises:
        EnvironmentFault: An environment breaks, or cannot be drawn.
        NumbersFault: The policy gives actions that are not finite.
    """
    envs = loaded.envs
    conditions = _conditions(loaded, shots)
    active = list(range(len(shots)))
    first = envs.reset(active, [int(seed) for seed in conditions.seeds], conditions.goals)
    observation = first.observation
    noise = np.zeros([len(shots), envs.spec.action_dim], np.float32)
    views = [View(envs.render(index), 0, False) for index in active]
    yield list(views)
    for step in range(1, envs.spec.max_episode_steps + 1):
        action = loaded.policy(observation, first.desired_goal, conditions.skills, noise)
        taken = envs.step(action[active], active)
        _refuse_faults(taken)
        for index, success in zip(active, taken.success, strict=True):
            views[index] = View(envs.render(index), step, bool(success))
        yield list(views)
        observation[active] = taken.observation
        over = taken.terminated | taken.truncated
        active = [index for index, done in zip(active, over, strict=True) if not done]
        if not active:
            return


def check_skill(skill: int | None, skills: int) -> None:
    """Checks the number of a skill, None being all of them.

    Raises:
        UsageError: The run has no such skill.
    """
    if skill is not None and not 0 <= skill < skills:
        known = f"0..{skills - 1}, or all" if skills > 1 else "0: this run has one skill"
        raise UsageError(f"--skill: expected {known}; got {skill}")


def _conditions(loaded: LoadedRun, shots: Sequence[Shot]) -> Conditions:
    """Returns the protocol's seeds and goals of the shots, each with its skill."""
    config, goal_dim = loaded.config, loaded.envs.spec.goal_dim
    zero_goals = config.goals == "zero"
    single = [
        evaluation_conditions(range(at, at + 1), goal_dim, zero_goals, config.skills, skill)
        for at, skill in shots
    ]
    return Conditions(
        np.concatenate([one.seeds for one in single]),
        np.zeros([len(shots), goal_dim], np.float32) if zero_goals else None,
        np.concatenate([one.skills for one in single]),
    )


def _refuse_faults(taken: Steps) -> None:
    for fault in taken.faults:
        if fault is not None:
            raise EnvironmentFault(fault)
