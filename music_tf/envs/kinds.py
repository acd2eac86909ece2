"""Classifies the columns of an observation, and finds columns that follow from others.

Twins are episodes that are equal until their actions differ. A column that then differs at once
belongs to the robot; one that differs later, in some twins, was touched. So no threshold on motion
is needed.
"""

import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.envs.twins import Branch, Columns, Rows

ANSWER, MOVED = 1e-3, 5.0
"""Threshold of a caused difference, in standard deviations; multiple of it that is a movement."""
_SOON, _SETTLED = 2, 5
"""Steps within which the robot responds; steps after which a world has come to rest."""
_MOST, _RARE = 0.5, 0.1
"""Share of branches in which the robot responds, or of steps without actions in which a mover
moves; share of such steps above which a column that was never touched is a mover, too."""
_BACK, _SMOOTH, _ROUGH = 0.1, 0.15, 0.5
"""A pulse returns to within this share of its largest difference. Its change per step, in standard
deviations, exceeds the second number, or the third if it does not return."""
_UNKNOWN = 0.3
"""Share of a standard deviation by which a repeated episode may differ."""
_VELOCITY, _AGAIN, _TIE, _EXACT = 0.75, 0.5, 0.02, 1e-4
"""Least correlation of a velocity with the change of a position, and of the changes of both; what
it may fall short of the best; tolerance of a difference or a square, in standard deviations."""
_MANY = 70
"""Most columns for which differences are looked for."""


class Kind(enum.StrEnum):
    """Kind of a column."""

    ROUNDED = "change by little more than the rounding of single precision"
    ROBOT = "respond to the action at once"
    SWING = "move by themselves, and the action moves them, too"
    OBJECT = "rest until touched, and stay where they were left"
    PULSE = "change briefly when touched: speeds of things, contact sensors"
    MOVER = "move whatever the action"
    SETTLE = "move in the first steps alone"
    REST = "differ between episodes, and nothing moved them"
    CONSTANT = "never change"
    NOISE = "differ when the same is played again"


class ColumnFacts(NamedTuple):
    """Facts about the columns, by which groups of them are compared."""

    branches: Sequence[Branch]
    tolerance: Rows
    """Largest difference without a cause, [O]."""
    kinds: Sequence[Kind]
    derived: Mapping[int, str]
    """Columns that follow from others, each with a description."""
    turned: Mapping[int, str]
    """Columns that represent angles, each with the representation."""
    differences: Mapping[tuple[int, int], int]
    """By a column of an object and one of the robot, the column that is their difference."""
    goal: Columns
    """Columns that are the achieved goal; empty if it is not observed."""

    @property
    def places(self) -> list[int]:
        """Columns of the robot that may be positions: no cosines, no quaternions."""
        return [c for c in self.of(Kind.ROBOT) if c not in self.turned]

    @property
    def movable(self) -> list[int]:
        """Places, and columns that move by themselves and that the action moves, too."""
        return [c for c in self.of(Kind.ROBOT, Kind.SWING) if c not in self.turned]

    def of(self, *kinds: Kind) -> list[int]:
        return [c for c, kind in enumerate(self.kinds) if kind in kinds and c not in self.derived]


def compared(branches: Sequence[Branch], noise: Rows) -> ColumnFacts:
    """Compares branches with twins, and columns with each other; repeats differ by `noise` [O]."""
    states = np.concatenate([branch.rows for branch in branches])
    scale = deviations(states)
    tolerance = np.max([ANSWER * scale, 3.0 * noise, rounding(states)], axis=0)
    rough = (
        np.concatenate([np.diff(branch.rows, axis=0) for branch in branches]).std(axis=0) / scale
    )
    kinds = kinds_of(branches, scale, tolerance, rough)
    leaps = [c for c, kind in enumerate(kinds) if kind == Kind.ROBOT and rough[c] > _ROUGH]
    return ColumnFacts(
        branches,
        tolerance,
        kinds,
        dict.fromkeys(leaps, "leap from step to step")
        | velocities(branches)
        | copies(branches, kinds),
        rotations(states, kinds),
        differences(states, kinds, scale),
        goal_columns(states, np.concatenate([branch.goals for branch in branches])),
    )


def deviations(states: Rows) -> Rows:
    """Returns standard deviations of states [N, O], at least a hundredth of their median, [O]."""
    deviation: Rows = states.std(axis=0)
    live = deviation[deviation > 1e-9]  # noqa: PLR2004
    return np.maximum(deviation, 0.01 * np.median(live) if len(live) else 1.0)


def rounding(states: Rows) -> Rows:
    """Returns the steps of single precision among the largest of states [N, O], [O]."""
    steps: Rows = np.spacing(np.abs(states).max(axis=0).astype(np.float32)).astype(np.float64)
    return steps


def kinds_of(branches: Sequence[Branch], scale: Rows, tolerance: Rows, rough: Rows) -> list[Kind]:
    """Returns the kinds of columns, from differences between twins and motion without actions."""
    parted = [np.abs(branch.difference_from_twin()) for branch in branches]
    parted = [gaps for gaps in parted if len(gaps)]
    first = [gaps[:_SOON].max(axis=0) > tolerance for gaps in parted]
    far = np.array([gaps.max(axis=0) for gaps in parted])
    moved = far > MOVED * tolerance
    returned = moved & (np.array([gaps[-1] for gaps in parted]) <= _BACK * far)
    touched, back = moved.any(axis=0), 2 * returned.sum(axis=0) >= moved.sum(axis=0)
    quiet = [
        np.abs(np.diff(branch.rows, axis=0)) > tolerance for branch in branches if branch.still
    ]
    settled = np.concatenate([steps[_SETTLED:] for steps in quiet])
    alone = settled.sum(axis=0) / max(1, len(settled))
    states = np.concatenate([branch.rows for branch in branches])
    rules = [
        (Kind.CONSTANT, np.ptp(states, axis=0) <= ANSWER * scale),
        (Kind.ROUNDED, rounding(states) > _UNKNOWN * scale),
        (Kind.NOISE, tolerance > _UNKNOWN * scale),
        (Kind.ROBOT, np.mean(first, axis=0) > _MOST),
        (Kind.SWING, (alone > _MOST) & (moved.mean(axis=0) > _MOST)),
        (Kind.MOVER, alone > _MOST),
        (Kind.PULSE, touched & ((rough > _ROUGH) | (back & (rough > _SMOOTH)))),
        (Kind.OBJECT, touched),
        (Kind.MOVER, alone > _RARE),
        (Kind.SETTLE, np.concatenate(quiet).any(axis=0)),
    ]
    columns = range(len(scale))
    return [next((kind for kind, holds in rules if holds[c]), Kind.REST) for c in columns]


def one_sided(branches: Sequence[Branch]) -> Rows:
    """Returns 0 for columns that an opposite action moves the opposite way, 1 for the same, [O]."""
    effects: dict[int, list[Rows]] = {}
    for branch in branches:
        if len(gaps := branch.difference_from_twin()):
            effects.setdefault(branch.seed_index, []).append(gaps[:_SOON][-1])
    pairs = [pair for pair in effects.values() if len(pair) == 2]  # noqa: PLR2004
    both = np.reshape(pairs, (-1, 2, branches[0].rows.shape[1]))
    total = np.abs(both).sum(axis=(0, 1))
    share: Rows = np.abs(both.sum(axis=1)).sum(axis=0) / np.maximum(total, 1e-300)
    return share


def velocities(branches: Iterable[Branch]) -> dict[int, str]:
    """Returns columns that are the change of a position, not of what only drags one along."""
    long = [branch.rows for branch in branches if len(branch.rows) > 3]  # noqa: PLR2004
    here = [rows[1:-1] for rows in long]
    before, around = ([rows[k:][: len(rows) - 2] - rows[:-2] for rows in long] for k in (1, 2))
    best = _strongest(here, before, around)
    again = _strongest(*([np.diff(r, axis=0) for r in part] for part in (here, before, around)))
    np.fill_diagonal(best, 0.0)
    of = best.argmax(axis=1)
    places: set[int] = set()
    speeds: set[int] = set()
    for c in np.argsort(-best.max(axis=1), kind="stable").tolist():
        o = int(of[c])
        follows = best[c, o] > max(_VELOCITY, best[o, c], best[:, o].max() - _TIE)
        if follows and again[c, o] > _AGAIN and c not in places and o not in speeds:
            places.add(o)
            speeds.add(c)
    return dict.fromkeys(sorted(speeds), "velocities")


def _strongest(here: Sequence[Rows], *changes: Sequence[Rows]) -> Rows:
    """Returns the largest absolute correlations of columns with any of some changes, [O, O]."""
    now = np.concatenate(here)
    strongest: Rows = np.max(
        [np.abs(correlations(now, np.concatenate(c))) for c in changes], axis=0
    )
    return strongest


def copies(branches: Sequence[Branch], kinds: Sequence[Kind]) -> dict[int, str]:
    moving = [c for c, kind in enumerate(kinds) if kind not in (Kind.CONSTANT, Kind.REST)]
    now = np.concatenate([branch.rows[1:] for branch in branches])
    before = np.concatenate([branch.rows[:-1] for branch in branches])
    texts: dict[int, str] = {}
    for column, other in itertools.permutations(moving, 2):
        if (now[:, column] == before[:, other]).all():
            texts.setdefault(column, f"{other} a step before")
        elif other < column and (now[:, column] == now[:, other]).all():
            texts.setdefault(column, f"{other} again")
    return texts


def correlations(a: Rows, b: Rows) -> Rows:
    """Returns correlations of columns of two arrays [N, A] and [N, B], [A, B]; 0 for constants."""
    return _normed(a).T @ _normed(b)


def _normed(a: Rows) -> Rows:
    off = a - a.mean(axis=0)
    length = np.linalg.norm(off, axis=0)
    columns: Rows = off / np.where(length <= 1e-12 * np.linalg.norm(a, axis=0), np.inf, length)
    return columns


def rotations(states: Rows, kinds: Sequence[Kind]) -> dict[int, str]:
    """Returns neighbouring columns whose squares sum to 1, with a description."""
    texts: dict[int, str] = {}
    for size, name in ((2, "cosines and sines of angles"), (4, "quaternions")):
        for first in range(states.shape[1] - size + 1):
            columns = range(first, first + size)
            off = np.abs(np.square(states[:, columns]).sum(axis=1) - 1.0)
            if off.max() < 10 * _EXACT and Kind.CONSTANT not in kinds[first : first + size]:
                texts |= dict.fromkeys(columns, name)
    return texts


def differences(states: Rows, kinds: Sequence[Kind], scale: Rows) -> dict[tuple[int, int], int]:
    """Returns columns that are a place of a thing minus one of the robot, or the opposite."""
    # Which of the two is the place remains open: each is found as the other's difference.
    robots = [c for c, kind in enumerate(kinds) if kind == Kind.ROBOT]
    others = (Kind.ROBOT, Kind.CONSTANT, Kind.NOISE)
    things = [c for c, kind in enumerate(kinds) if kind not in others]
    if len(robots) + len(things) > _MANY:
        return {}
    steps = rounding(states)
    some = states[np.random.default_rng(0).permutation(len(states))[:300]]
    result: dict[tuple[int, int], int] = {}
    for thing, place in itertools.product(things, robots):
        gap = np.abs(some[:, [thing]] - some[:, [place]])
        off = np.abs(np.abs(some[:, robots]) - gap).max(axis=0)
        most = _EXACT * np.minimum(scale[place], scale[robots])
        most = np.maximum(most, max(steps[thing], steps[place]))
        if (off <= most).any():
            result[thing, place] = robots[int((off <= most).argmax())]
    return result


def goal_columns(states: Rows, goals: Rows) -> Columns:
    """Returns the columns of states [N, O] that are the achieved goals [N, G], if any are."""
    size = goals.shape[1]
    least = np.minimum(1e-6, _EXACT * deviations(goals)) if size else 0.0
    for first in range(states.shape[1] - size + 1 if size else 0):
        if np.allclose(states[:, first : first + size], goals, atol=least):
            return tuple(range(first, first + size))
    return ()
