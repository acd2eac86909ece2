"""Frozen skills, each with its own actor, in the checkpoint of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_tf.errors import UsageError
from music_tf.files import as_object
from music_tf.gate import Arrays
from music_tf.networks.acting import SKILLS
from music_tf.normalizer import COLUMNS
from music_tf.storage.checkpoint import StoredWeights
from music_tf.types import Array

_ACTOR, _FIRST = f"{SKILLS}actor/", "parameters/actor/hidden_0/kernel"
_TOTALS = "normalizer/"
_LEARNER = ("parameters/actor/", "parameters/critic_", "parameters/value/", "targets/", SKILLS)
"""Prefixes of arrays that belong to the skill in training, or to all skills."""


def worlds_of(meta: Mapping[str, Any]) -> list[Any] | None:
    """Returns the stage in which each frozen skill was learned; None if the file has none."""
    worlds = as_object(meta.get("incremental")).get("worlds")
    return worlds if isinstance(worlds, list) else None


def of_one_skill(
    stored: StoredWeights, source: Path, skill: int | None, sizes: tuple[int, int]
) -> StoredWeights:
    """Returns one frozen skill as if a run had learned it alone, without critics."""
    # Its actor never read a condition, so kernels get zeros in those rows.
    learned = len(worlds_of(stored.meta) or ())
    every = {name: array for name, array in stored.arrays.items() if name.startswith(SKILLS)}
    if not learned:
        raise UsageError(f"--init-from: {source}: no skill is learned yet, expected at least one")
    if skill is None or skill >= learned:
        raise UsageError(
            f"--init-from: {source}: each of its skills has an actor, expected one of "
            f"0..{learned - 1} as --pinned-skill, got {skill}\n"
            f"for example: --skills {learned} --pinned-skill 0, or --best-of 10"
        )
    arrays: Arrays = {n: a for n, a in stored.arrays.items() if not n.startswith(_LEARNER)}
    try:
        for name, array in every.items():
            if name.startswith(_ACTOR):
                arrays[name.replace(SKILLS, "parameters/")] = array[skill]
        if _FIRST in arrays:
            arrays[_FIRST] = with_zeros(arrays[_FIRST], *sizes)  # of observation and condition
        totalled = [name for name in arrays if name.startswith(_TOTALS) and name != COLUMNS]
        for totals in totalled if every else ():
            moments = every[totals.replace(_TOTALS, f"{SKILLS}moments/")]
            arrays[totals] = _totals(moments[skill], arrays[totals])
    except (IndexError, KeyError, ValueError) as error:
        raise UsageError(f"--init-from: {source}: skill {skill} is not what a run saves") from error
    actor = [n.replace(SKILLS, "parameters/") for n in stored.names if n.startswith(_ACTOR)]
    others = [name for name in stored.names if not name.startswith(_LEARNER)]
    return stored._replace(arrays=arrays, names=(*actor, *others))


def with_zeros(kernel: Array, before: int, condition: int) -> Array:
    """Returns a kernel with zero rows for a condition, inserted after row `before`."""
    rows = np.zeros([condition, *kernel.shape[1:]], kernel.dtype)
    return np.concatenate([kernel[:before], rows, kernel[before:]])


def _totals(moments: Array, counted: Array) -> Array:
    """Sums, sums of squares and count [2D + 1] from moments [2, D]."""
    mean, deviation = moments.astype(np.float64)
    count = counted[-1:]
    return np.concatenate([count * mean, count * (np.square(mean) + np.square(deviation)), count])
