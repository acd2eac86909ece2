"""Plays evaluation episodes and takes a picture of each state."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from music_tf.errors import UsageError
from music_tf.rollout import Conditions, play
from music_tf.runs.inspection import LoadedRun
from music_tf.tools.offscreen import paint
from music_tf.tools.painter import Picture, Take
from music_tf.tools.rewards import reward_panel
from music_tf.tools.traces import Trace, reward_traces
from music_tf.training.evaluation import evaluation_conditions
from music_tf.types import IntArray


class Shot(NamedTuple):
    """Which episode is filmed."""

    episode: int
    """Index in the evaluation protocol, from 0."""
    skill: int


class View(NamedTuple):
    """One episode at one time."""

    image: Picture
    step: int
    success: bool
    """Whether it is over and has succeeded."""
    traces: Sequence[Trace] = ()
    """What each learned reward pays along the whole episode: values [length]."""


def film(
    loaded: LoadedRun, shots: Sequence[Shot], variables: Mapping[str, str]
) -> Iterator[list[View]]:
    """Plays episodes side by side, under the goals of training, and shows each of their states.

    Args:
        loaded: The run; must have an environment for each shot.
        shots: What to film.
        variables: What `drawing_variables` returned.

    Yields:
        A view of each shot: the first states, then those after each step. Episodes that are
        over stand still, and when all of them are, the film ends.

    Raises:
        EnvironmentFault: An environment breaks, or cannot be drawn.
        NumbersFault: The policy gives actions that are not finite.
    """
    conditions = _conditions(loaded, shots)
    played = play(loaded.envs, loaded.policy, conditions, None)
    take = Take(
        played.seed,
        played.desired_goal[:0] if conditions.goals is None else conditions.goals,
        played.action,
        played.length,
        played.observation,
    )
    traces = _by_episode(reward_traces(loaded.trainer, played), played.length)
    for step, images in enumerate(paint(loaded.config.env_id, take, variables)):
        now = np.minimum(step, played.length)
        succeeds = played.success & (now == played.length)
        yield list(map(View, images, now.tolist(), succeeds.tolist(), traces))


def panels(view: View, steps: int, width: int) -> list[Image.Image]:
    """Returns what stands between a picture and its caption: a panel for each learned reward."""
    return [
        reward_panel(trace, number, view.step, steps, width)
        for number, trace in enumerate(view.traces)
    ]


def check_skill(skill: int | None, skills: int) -> None:
    """Checks the number of a skill, None being all of them.

    Raises:
        UsageError: The run has no such skill.
    """
    if skill is not None and not 0 <= skill < skills:
        known = f"0..{skills - 1}, or all" if skills > 1 else "0: this run has one skill"
        raise UsageError(f"--skill: expected {known}; got {skill}")


def _by_episode(traces: Sequence[Trace], length: IntArray) -> list[list[Trace]]:
    """Returns the traces of each episode, as far as it goes."""
    return [
        [trace._replace(values=trace.values[episode, :steps]) for trace in traces]
        for episode, steps in enumerate(length)
    ]


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
