"""Checks of what environments observe, return and show."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from music_tf.config.names import few
from music_tf.envs.extras import RecordingInfo
from music_tf.envs.making import GOAL_KEYS
from music_tf.envs.member import one_line
from music_tf.envs.repeating import states
from music_tf.envs.viewer import can_render
from music_tf.errors import FROM_USERS, EnvironmentFault, Finding, MusicError
from music_tf.training.environment_trial import OTHER_SEEDS, SEED, EnvironmentTrial
from music_tf.types import Array, BoolArray

_COARSE = 1e-2
"""Share of a step by which rounding may move inputs of networks."""
_SHORT = 5
"""Steps of an episode that are too few to compare its last one with."""
_OUTSIDE, _LEAP, _MOST = 1e-5, 3.0, 0.5
"""Share of a number by which rounding may leave its bounds; how much farther than all other steps
the last one may change columns, and which share of them,
over episodes that start at different places."""


def episode(trial: EnvironmentTrial) -> Finding:
    """Plays an episode, whose steps are checked as in training."""
    try:
        steps = len(list(states(trial.envs, SEED, trial.envs.spec.max_episode_steps))) - 1
        kind = trial.raw[-1].observation["observation"].dtype
    except MusicError as fault:
        return Finding(one_line(fault), _cure(trial))
    if not np.issubdtype(kind, np.floating):
        return Finding(f"the observation is {kind}", "return floating point numbers", warning=True)
    return Finding(f"{steps} steps with finite numbers of the declared shapes")


def _cure(trial: EnvironmentTrial) -> str:
    """Returns what to do about an episode that fails, with the options that `reset` reads."""
    options = RecordingInfo({})
    for each in (None, options):
        with contextlib.suppress(*FROM_USERS):
            trial.envs.environment.reset(seed=SEED, options=each)
            break
    if options.names:
        names = few([f"options[{name!r}]" for name in options.names])
        return f"nothing passes options: let reset run without {names}, by a default value"
    return (
        "let reset(seed=...) and step(action) return finite numbers of the declared shapes, a "
        "number as the reward, and a dict as info, with a truth value as success"
    )


def _parts(trial: EnvironmentTrial) -> dict[str, Any]:
    space: Any = trial.envs.environment.observation_space
    return {key: space[key] for key in GOAL_KEYS} if trial.has_goals else {GOAL_KEYS[0]: space}


def fresh_arrays(trial: EnvironmentTrial) -> Finding:
    """Checks that a returned observation does not change later."""
    for step, raw in enumerate(trial.raw):
        returned = raw.returned if trial.has_goals else {GOAL_KEYS[0]: raw.returned}
        for key in _parts(trial):
            now, then = (np.asarray(part[key], np.float64) for part in (returned, raw.observation))
            if not np.array_equal(now, then, equal_nan=True):
                text = f"{key} of step {step} changed when later steps were taken"
                cure = "return copies; training makes its own, but other programs may not"
                return Finding(text, cure, warning=True)
    return Finding("arrays once returned do not change")


def inputs(trial: EnvironmentTrial) -> Finding:
    """Looks for inputs that single precision blurs, or that `normalizer.input_clip` clips."""
    most, length = trial.normalizer.input_clip, trial.length + 1
    rows_of = {"observation": trial.episode.observation[0, :length]}
    if trial.shows_goals:
        both = trial.episode.achieved_goal[0, :length], trial.episode.desired_goal
        rows_of["achieved_goal"] = np.concatenate(both)
    for key, rows in rows_of.items():
        largest = np.abs(rows).max(axis=0)
        blurred, clipped = _blurred(trial, key, largest), largest > most
        wrong = blurred if blurred.any() else clipped
        if not wrong.any():
            continue
        columns, reached = few(list(map(str, np.flatnonzero(wrong)))), largest[wrong].max()
        name = "the observation" if key == "observation" else "goals"
        detail = f"columns {columns} of {name} reach {reached:g}, and networks see them "
        if blurred.any():
            detail += f"in steps of {np.spacing(reached):g}, since single precision has no more"
            return Finding(detail, "subtract a constant, such as a place near them", warning=True)
        cure = (
            "give them in larger units, relative to a place near them, or give "
            "--normalizer.input-clip a larger number"
        )
        return Finding(f"{detail}clipped at {most:g}", cure, warning=True)
    return Finding("no number is clipped")


def _blurred(trial: EnvironmentTrial, key: str, largest: Array) -> BoolArray:
    """Returns which columns lose their motion to rounding, [D]; small ones lose noise alone."""
    large = largest > type(trial.normalizer).input_clip
    if not large.any():
        return large
    try:
        rows = np.array([step.observation[key] for step in trial.raw], np.float64)
    except EnvironmentFault:  # it does not repeat itself
        return np.zeros_like(large)
    moved = np.abs(np.diff(rows, axis=0)).max(axis=0)
    moved = np.where(moved > 0.0, moved, moved.max())
    return np.asarray(large & (moved > 0.0) & (np.spacing(largest) > _COARSE * moved))


def bounds(trial: EnvironmentTrial) -> Finding:
    """Looks for observations outside the declared space."""
    for (key, part), values in zip(_parts(trial).items(), trial.episode[:3], strict=False):
        rows = values[0].reshape(-1, values.shape[-1])[: trial.length + 1]
        slack = _OUTSIDE * np.abs(rows)
        outside = (rows < part.low - slack) | (rows > part.high + slack)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            return Finding(
                f"{key}[{column}] is {rows[row, column]:g}, outside its declared space of "
                f"{part.low[column]:g} to {part.high[column]:g}",
                "declare the range that it has: training does not clip to it, other programs do",
                warning=True,
            )
    return Finding("observations are inside their declared space")


def units(trial: EnvironmentTrial) -> Finding:
    """Looks for columns that differ by less than the normaliser divides by."""
    rows, least = np.zeros((0, trial.envs.spec.observation_dim)), trial.normalizer.epsilon
    for episode in _episodes(trial):
        rows = np.concatenate([rows, episode])
        span = np.ptp(rows, axis=0)
        small = np.flatnonzero((span > 0.0) & (span < least))
        if not len(small) or trial.is_known:
            return Finding(f"none is too small for networks, below {least:g}")
    return Finding(
        f"columns {few(list(map(str, small)))} of the observation differ by at most "
        f"{span[small].max():g}; inputs are divided by {least:g} at least, so networks hardly see "
        "them",
        "give them in a smaller unit, or give --normalizer.epsilon a smaller number",
        warning=True,
    )


def last_step(trial: EnvironmentTrial) -> Finding:
    """Looks for last observations that belong to the next episode."""
    leaps, moved = 0, 0
    for episode in _episodes(trial):
        changes = np.abs(np.diff(episode, axis=0))
        far = changes[-1] > _LEAP * changes[:-1].max(axis=0, initial=0.0)
        if len(changes) <= _SHORT or not far.any():
            break
        leaps, moved = leaps + int(far.sum()), moved + int(changes.any(axis=0).sum())
    else:
        if leaps > _MOST * moved:
            return Finding(
                f"the last step of an episode changes columns more than {_LEAP:g} times as far as "
                "all others: does its observation belong to the next episode?",
                'return the last observation of the episode, or put it into info["final_obs"]',
                warning=True,
            )
    return Finding("the last step is no larger than others")


def _episodes(trial: EnvironmentTrial) -> Iterator[Any]:
    """Yields observations [T + 1, O] of episodes of random actions."""
    yield trial.episode.observation[0, : trial.length + 1]
    spec = trial.envs.spec
    for seed in OTHER_SEEDS[:3]:
        rows = np.array(list(states(trial.envs, seed, spec.max_episode_steps)))
        yield rows[:, : spec.observation_dim]


def render(trial: EnvironmentTrial) -> Finding:
    if can_render(trial.envs.environment):
        return Finding("there is a method for films")
    return Finding(
        "it has no method render, so play and report cannot film it",
        'define render(self), which returns an image [height, width, 3] under "rgb_array"',
        warning=True,
    )
