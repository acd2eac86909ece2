"""What each column of an observation does, and which of them follow from others.

What differs between twins as soon as their actions do is the robot's; what differs later, in some
of them, was touched. No threshold on motion has to guess.
"""

import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.envs.twins import Branch, Columns, Rows

ANSWER, MOVED = 1e-3, 5.0
"""Share of a deviation beyond which a difference was caused; how many times that has moved."""
_OFTEN, _SELDOM = 0.8, 0.5
"""Shares of branches in which the robot answers at once, and in which objects do not."""
_BACK, _SMOOTH, _ROUGH = 0.1, 0.15, 0.5
"""Share of its way to which a pulse comes back; changes of a step that pulses have, in deviations:
at least, and so that they need not come back."""
_UNKNOWN = 0.3
"""Share of a deviation by which what is played again must not differ."""
_VELOCITY, _EXACT = 0.75, 1e-4
"""Correlation with another column's change; how exact a sum or a square is, in deviations."""
_MANY = 70
"""Columns up to which sums of two are looked for."""
_SETTLED, _LATEST = 5, 8
"""Steps after which a world has come to rest; most steps until an action shows."""


class Kind(enum.StrEnum):
    """What a column does."""

    ROBOT = "answer the action at once"
    OBJECT = "rest until touched, and stay where they were left"
    PULSE = "twitch when touched: speeds of things, contact sensors"
    MOVER = "move whatever is done"
    CLOCK = "rise or fall alike in every episode"
    SETTLE = "move in the first steps alone"
    REST = "differ between episodes, and nothing moved them"
    CONSTANT = "never change"
    NOISE = "differ when the same is played again"


class Answers(NamedTuple):
    """What the columns did, each [O]."""

    scale: Rows  # deviation
    tolerance: Rows  # what differs by more was caused
    at_once: Rows  # share of branches that differ as soon as any column does
    ever: Rows  # share of branches that differ at some time
    touched: npt.NDArray[np.bool_]  # whether it was ever moved
    one_sided: Rows  # 0 where the opposite action does the opposite, 1 where it does nothing
    stays: Rows  # where it ends, as a share of the farthest that it was moved
    alone: Rows  # share of steps in which it moves without actions, once it has settled
    rough: Rows  # change of a step, in deviations


class ColumnFacts(NamedTuple):
    """All that is known of the columns when groups are compared."""

    branches: Sequence[Branch]
    answers: Answers
    kinds: Sequence[Kind]
    derived: Mapping[int, str]
    """Columns that are velocities or copies, with what they are."""
    turned: Mapping[int, str]
    """Columns that are angles, with how they are shown."""
    relative: Mapping[int, tuple[int, int]]
    """Columns that are a thing's place minus one of the robot's, with both."""
    sums: Sequence[tuple[int, int, int]]
    goal: Columns
    """Columns that are the achieved goal; empty where it is not observed."""

    @property
    def joints(self) -> list[int]:
        """Columns that answer, but for what follows from others."""
        rough = self.answers.rough
        return [c for c in self.of(Kind.ROBOT) if rough[c] < _ROUGH and c not in self.relative]

    @property
    def places(self) -> list[int]:
        """Joints that could be where something is: no cosines, no quaternions."""
        return [c for c in self.joints if c not in self.turned]

    def of(self, *kinds: Kind) -> list[int]:
        """Returns columns of some kinds, but for those that are derived."""
        return [c for c, kind in enumerate(self.kinds) if kind in kinds and c not in self.derived]


def compared(branches: Sequence[Branch], noise: Rows) -> ColumnFacts:
    """Compares branches with their twins, and columns with each other.

    Args:
        branches: What was played.
        noise: By how much columns differ when the same is played again, [O].
    """
    answers = answered(branches, noise)
    kinds = [kind_of(column, branches, answers) for column in range(len(answers.scale))]
    states = np.concatenate([one.rows for one in branches])
    live = [c for c, kind in enumerate(kinds) if kind != Kind.CONSTANT]
    sums = sums_of(states, live, answers.scale) if len(live) <= _MANY else []
    moving = [c for c in live if kinds[c] != Kind.REST]
    return ColumnFacts(
        branches,
        answers,
        kinds,
        dict.fromkeys(velocities(branches), "velocities") | copies(branches, moving),
        rotations(states, live),
        relatives(branches, kinds, sums),
        sums,
        goal_columns(states, np.concatenate([one.goals for one in branches])),
    )


def answered(branches: Sequence[Branch], noise: Rows) -> Answers:
    """Measures what columns do beside their twins, and without actions."""
    scale = deviations(np.concatenate([one.rows for one in branches]))
    tolerance = np.maximum(ANSWER * scale, 3.0 * noise)
    parted = [one for one in branches if len(one.apart())]
    chance = [one for one in parted if one.at_random]
    soon = 1 + delay(chance, tolerance)
    far = np.array([np.abs(one.apart()).max(axis=0) for one in parted])
    ends = np.array([np.abs(one.apart()[-1]) for one in parted]) / np.maximum(far, 1e-300)
    moved = far > MOVED * tolerance
    first = [np.abs(one.apart()[:soon]).max(axis=0) > tolerance for one in chance]
    ever = [np.abs(one.apart()).max(axis=0) > tolerance for one in chance]
    effects: dict[int, list[Rows]] = {}
    for one in chance:
        effects.setdefault(one.number, []).append(one.apart()[:soon][-1])
    pairs = [pair for pair in effects.values() if len(pair) == 2]  # noqa: PLR2004
    both = np.reshape(pairs, (-1, 2, len(scale)))
    total, rest = np.abs(both).sum(axis=1), np.abs(both.sum(axis=1))
    quiet = [np.abs(np.diff(one.rows, axis=0)) for one in stills(branches)]
    late = np.concatenate([one[_SETTLED:] for one in quiet if len(one) > _SETTLED] or quiet)
    changes = np.concatenate([np.diff(one.rows, axis=0) for one in branches])
    return Answers(
        scale=scale,
        tolerance=tolerance,
        at_once=np.mean(first, axis=0),
        ever=np.mean(ever, axis=0),
        touched=far.max(axis=0) > MOVED * tolerance,
        one_sided=_median(np.where(total > tolerance, rest / np.maximum(total, 1e-300), np.nan)),
        stays=_median(np.where(moved, ends, np.nan)),
        alone=(late > tolerance).mean(axis=0),
        rough=changes.std(axis=0) / scale,
    )


def deviations(states: Rows) -> Rows:
    """Returns those of columns of states [N, O], at least a hundredth of what is usual, [O]."""
    own: Rows = states.std(axis=0)
    live = own[own > 1e-9]  # noqa: PLR2004
    raised: Rows = np.maximum(own, 0.01 * np.median(live) if len(live) else 1.0)
    return raised


def delay(chance: Sequence[Branch], tolerance: Rows) -> int:
    """Returns after how many steps a column answers in nearly every branch; 1 if none does."""
    for steps in range(1, _LATEST + 1):
        caused = [np.abs(one.apart()[:steps]).max(axis=0) > tolerance for one in chance]
        if (np.mean(caused, axis=0) >= _OFTEN).any():
            return steps
    return 1


def stills(branches: Iterable[Branch]) -> list[Branch]:
    """Returns the episodes in which nothing was done from the first step on."""
    return [one for one in branches if one.twin is None and one.at == 0]


def _median(values: Rows) -> Rows:
    """Returns medians of columns [N, O] without what is not known, [O]; 0 where nothing is."""
    known = np.isfinite(values)
    pairs = zip(values.T, known.T, strict=True)
    return np.array([np.median(own[there]) if there.any() else 0.0 for own, there in pairs])


def kind_of(column: int, branches: Sequence[Branch], answers: Answers) -> Kind:
    """Says what a column does."""
    c, (scale, tolerance) = column, (answers.scale[column], answers.tolerance[column])
    rows = [one.rows[:, c] for one in branches]
    quiet = [one.rows[:, c] for one in stills(branches)]
    size = min(map(len, quiet))
    alike = np.ptp([one[:size] for one in quiet], axis=0).max() <= ANSWER * scale
    one_way = all((np.diff(one) > 0).all() or (np.diff(one) < 0).all() for one in quiet)
    spread, largest = np.ptp(np.concatenate(rows)), np.abs(np.concatenate(rows)).max()
    at_once, rough = answers.at_once[c], answers.rough[c]
    back = answers.stays[c] <= _BACK and rough > _SMOOTH
    rules = {
        Kind.NOISE: tolerance > _UNKNOWN * scale,
        Kind.CONSTANT: spread <= max(1e-9 * largest, ANSWER * scale),
        Kind.ROBOT: at_once >= _OFTEN or (at_once > _SELDOM and answers.one_sided[c] <= _OFTEN),
        Kind.CLOCK: alike and one_way and not answers.touched[c],
        Kind.MOVER: answers.alone[c] > _SELDOM and (answers.ever[c] < _SELDOM or rough < _ROUGH),
        Kind.PULSE: answers.touched[c] and (back or rough > _ROUGH),
        Kind.OBJECT: answers.touched[c],
    }
    for kind, holds in rules.items():
        if holds:
            return kind
    if answers.alone[c] > _BACK:
        return Kind.MOVER
    begins = any((np.abs(np.diff(one)) > tolerance).any() for one in quiet)
    return Kind.SETTLE if begins else Kind.REST


def velocities(branches: Iterable[Branch]) -> dict[int, int]:
    """Returns columns that go along with the change of another one, with that one."""
    long = [one.rows for one in branches if len(one.rows) > 3]  # noqa: PLR2004
    here = np.concatenate([rows[1:-1] for rows in long])
    best = np.zeros((here.shape[1],) * 2)
    for change in (
        [rows[1:-1] - rows[:-2] for rows in long],
        [rows[2:] - rows[:-2] for rows in long],
    ):
        best = np.maximum(best, np.abs(correlations(here, np.concatenate(change))))
    np.fill_diagonal(best, 0.0)
    of = best.argmax(axis=1).tolist()
    return {c: o for c, o in enumerate(of) if best[c, o] > _VELOCITY and best[c, o] > best[o, c]}


def copies(branches: Iterable[Branch], moving: Sequence[int]) -> dict[int, str]:
    """Returns columns that are others as they are, or as they were a step before."""
    pairs = [(one.rows[1:, moving], one.rows[:-1, moving]) for one in branches]
    now, before = (np.concatenate(part) for part in zip(*pairs, strict=True))
    found: dict[int, str] = {}
    for i, column in enumerate(moving):
        same = np.abs(now[:, :i] - now[:, [i]]).max(axis=0, initial=0.0) == 0.0
        late = np.abs(before - now[:, [i]]).max(axis=0) == 0.0
        late[i] = False
        for held, text in ((same, "{} again"), (late, "{} a step before")):
            if held.any():
                found[column] = text.format(moving[int(held.argmax())])
    return found


def correlations(a: Rows, b: Rows) -> Rows:
    """Returns those of the columns of two arrays [N, A] and [N, B], [A, B]; 0 of constants."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    norms = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    found: Rows = (a.T @ b) / np.maximum(norms, 1e-12)
    return found


def rotations(states: Rows, live: Sequence[int]) -> dict[int, str]:
    """Returns neighbours whose squares add up to 1, with what they are."""
    found: dict[int, str] = {}
    for size, name in ((2, "cosines and sines of angles"), (4, "quaternions")):
        for first in range(states.shape[1] - size + 1):
            columns = range(first, first + size)
            norm = np.square(states[:, columns]).sum(axis=1)
            if set(columns) <= set(live) and np.abs(norm - 1.0).max() < 10 * _EXACT:
                found |= dict.fromkeys(columns, name)
    return found


def sums_of(states: Rows, live: Sequence[int], scale: Rows) -> list[tuple[int, int, int]]:
    """Returns columns a, b, c with a = b + c."""
    some = states[np.random.default_rng(0).permutation(len(states))[:300]]
    own, found = some[:, live], []
    for b, c in itertools.combinations(live, 2):
        off = np.abs(own - (some[:, b] + some[:, c])[:, None]).max(axis=0)
        most = np.maximum(_EXACT * np.minimum(min(scale[b], scale[c]), scale[live]), 1e-7)
        found += [
            (live[i], b, c) for i in np.flatnonzero(off <= most).tolist() if live[i] not in (b, c)
        ]
    return found


def goal_columns(states: Rows, goals: Rows) -> Columns:
    """Returns the columns of states [N, O] that are the achieved goals [N, G], if any are."""
    size = goals.shape[1]
    for first in range(states.shape[1] - size + 1 if size else 0):
        if np.allclose(states[:, first : first + size], goals, atol=1e-6):
            return tuple(range(first, first + size))
    return ()


def relatives(
    branches: Sequence[Branch], kinds: Sequence[Kind], sums: Iterable[tuple[int, int, int]]
) -> dict[int, tuple[int, int]]:
    """Returns columns that are a thing's minus one of the robot's, with both.

    Of the two that answer the action in such a sum, one is relative. A run of neighbours is alike.
    """
    runs: list[list[Columns]] = []
    for three in sorted(sums):
        robots = sorted(c for c in three if kinds[c] == Kind.ROBOT)
        things = [c for c in three if kinds[c] not in (Kind.ROBOT, Kind.CONSTANT, Kind.CLOCK)]
        if len(things) != 1 or len(robots) != 2:  # noqa: PLR2004
            continue
        row = (things[0], *robots)
        if runs and runs[-1][-1] == tuple(c - 1 for c in row):
            runs[-1].append(row)
        else:
            runs.append([row])
    found: dict[int, tuple[int, int]] = {}
    for run in runs:
        leans = np.sum([leaning(branches, *row) for row in run], axis=0)
        for thing, b, c in run:
            found |= {b: (thing, c)} if leans[0] > leans[1] else {c: (thing, b)}
    return found


def leaning(branches: Iterable[Branch], thing: int, b: int, c: int) -> Rows:
    """Returns how much each of two columns changes with a thing beside what the action does, [2].

    Of a thing that never moves, how much each follows its place.
    """
    inputs, outputs, starts = [], [], []
    for one in branches:
        step = np.diff(one.rows, axis=0)
        ones = np.ones((max(0, len(step) - 1), 1))
        inputs.append(np.hstack([step[1:, [thing]], ones, one.actions[1:], step[:-1, [b, c]]]))
        outputs.append(step[1:, [b, c]])
        starts.append(one.rows[0, [b, c, thing]])
    x, y = np.concatenate(inputs), np.concatenate(outputs)
    if np.abs(x[:, 0]).max() > 0.0:
        own: Rows = np.abs(np.linalg.lstsq(x, y, rcond=None)[0][0])
        return own
    follow: Rows = np.abs(np.cov(np.array(starts).T)[2, :2])
    return follow
