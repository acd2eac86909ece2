"""Checks of what environments observe and show, which training and `check-env` share."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from music_tf.config.names import KNOWN, few, is_one_of
from music_tf.envs.making import GOAL_KEYS
from music_tf.envs.repeating import states
from music_tf.envs.viewer import can_render
from music_tf.errors import Finding

if TYPE_CHECKING:
    from music_tf.training.rehearsal import Rehearsal

_OTHER_SEEDS = range(1, 4)
_SHORT = 5
"""Steps of an episode that are too few to compare its last one with."""
_OUTSIDE, _LEAP, _MOST = 1e-5, 3.0, 0.5
"""Share of a number by which rounding may leave its bounds; how much farther than all other steps
the last one may change columns, and which share of them,
over episodes that start at different places."""


def bounds(stage: "Rehearsal") -> Finding:
    """Looks for observations outside the declared space."""
    space: Any = stage.envs.environment.observation_space
    parts = [space[key] for key in GOAL_KEYS] if stage.has_goals else [space]
    for key, part, values in zip(GOAL_KEYS, parts, stage.episode[:3], strict=False):
        rows = values[0].reshape(-1, values.shape[-1])[: int(stage.episode.length[0]) + 1]
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


def units(stage: "Rehearsal") -> Finding:
    """Looks for columns that differ by less than the normaliser divides by."""
    rows, least = np.zeros((0, stage.envs.spec.observation_dim)), stage.epsilon
    for episode in _episodes(stage):
        rows = np.concatenate([rows, episode])
        span = np.ptp(rows, axis=0)
        small = np.flatnonzero((span > 0.0) & (span < least))
        if not len(small) or is_one_of(stage.env_id, KNOWN):
            return Finding(f"none is too small for networks, below {least:g}")
    return Finding(
        f"columns {few(list(map(str, small)))} of the observation differ by at most "
        f"{span[small].max():g}; inputs are divided by {least:g} at least, so networks hardly see "
        "them",
        "give them in a smaller unit, or give --normalizer.epsilon a smaller number",
        warning=True,
    )


def last_step(stage: "Rehearsal") -> Finding:
    """Looks for last observations that belong to the next episode."""
    leaps, moved = 0, 0
    for episode in _episodes(stage):
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


def render(stage: "Rehearsal") -> Finding:
    """Looks for the method that films need."""
    if can_render(stage.envs.environment):
        return Finding("there is a method for films")
    return Finding(
        "it has no method render, so play and report cannot film it",
        'define render(self), which returns an image [height, width, 3] under "rgb_array"',
        warning=True,
    )


def _episodes(stage: "Rehearsal") -> Iterator[Any]:
    """Yields observations [T + 1, O] of episodes of random actions."""
    yield stage.episode.observation[0, : int(stage.episode.length[0]) + 1]
    spec = stage.envs.spec
    for seed in _OTHER_SEEDS:
        rows = np.array(list(states(stage.envs, seed, spec.max_episode_steps)))
        yield rows[:, : spec.observation_dim]


ROWS: Mapping[str, Callable[["Rehearsal"], Finding]] = {
    **{"bounds": bounds, "units": units, "last step": last_step, "render": render}
}
