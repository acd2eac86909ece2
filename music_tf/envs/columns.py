"""Which columns of an observation to name: the robot, its surroundings, an object, a gripper.

Found by random play, see `envs.twins` and `envs.kinds`. Nothing is proposed without evidence.
"""

import enum
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from music_tf.envs.kinds import (
    ANSWER,
    MOVED,
    ColumnFacts,
    Kind,
    compared,
    correlations,
    deviations,
    one_sided,
)
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.twins import Branch, Columns, Player, Rows, replaying
from music_tf.errors import UsageError

SEEDS, MORE, SHORT = 16, 64, 5
"""Seeds at first and at most, and steps that are too few for an episode."""
_LEAST = 2 * SEEDS
"""Branches that have to go on for more than `SHORT` steps."""
_EPISODES = 24
"""Episodes of random actions, to see what moves in them."""
_ONE_SIDED = 0.5
"""Effects of an action and of its opposite added up, as a share of both, from which on a thing is
pushed: a joint goes the other way."""
_TOUCHES, _EVERY = 6, 8
"""Touches that are enough, and seeds after which further ones are looked at."""
_NEAR, _ALONG, _SHARED = 0.6, 0.4, 0.5
"""Distance at a touch as a share of the usual one, correlation of changes, and share of axes beyond
which they count."""
_WAYS = 3
"""Most axes of a place."""
_MAY_BE_TOUCHED = (Kind.REST, Kind.SETTLE, Kind.OBJECT, Kind.PULSE, Kind.CONSTANT)
"""Kinds of columns that more play may show to be an object's."""
_FEW = 5
"""Steps that are too few for a correlation."""


class Certainty(enum.StrEnum):
    """How far a proposal can be trusted."""

    SURE = "sure"
    LIKELY = "likely"
    NO_OBJECT = "no object seen"
    CANNOT_TELL = "cannot tell"


class Proposal(NamedTuple):
    """Columns, or the name of a descriptor, and why."""

    columns: tuple[int | str, ...]
    reason: str


class PlayResult(NamedTuple):
    """What playing has shown."""

    kinds: Sequence[Kind]
    """Kind of each column; empty where episodes are too short to tell."""
    relations: Mapping[int, str]
    """What some columns are, seen from others."""
    verdict: Certainty
    why: str
    """What speaks for the verdict where the proposals do not say it."""
    proposed: Mapping[str, Proposal]
    """By the fields of a `World`: agent, surrounding, object, gripper, descriptor."""
    others: Sequence[Columns] = ()
    """Further objects."""
    steps: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    """Steps a second that one environment plays, resets included."""
    fault: str = ""
    """What broke last, if anything."""


class Match(NamedTuple):
    """Columns of the robot beside as many of a thing, and what relates them."""

    gripper: Columns
    thing: Columns
    score: float
    touches: int
    why: tuple[str, ...]


def look(envs: LockstepEnvs) -> PlayResult:
    """Plays some thousand steps; returns the kind of each column."""
    start, player = time.monotonic(), Player(envs)
    for number in range(SEEDS):
        player.part(number)
    longest = max(len(branch.actions) for branch in player.branches)
    usable = sum(len(branch.actions) - branch.at > SHORT for branch in player.branches)
    if longest <= SHORT or (usable < _LEAST and player.fault):
        broke = f"; {player.fault}" if player.fault else ""
        raise UsageError(f"expected episodes of more than {SHORT} steps, got {longest}{broke}")
    if usable < _LEAST:
        why = (
            f"{usable} of {len(player.branches)} episodes went on for more than {SHORT} steps "
            f"after their actions parted, and {_LEAST} are needed"
        )
        return _timed(PlayResult((), {}, Certainty.CANNOT_TELL, why, {}), player, start)
    noise = repeated(player)
    facts = compared(player.branches, noise)
    result = proposed(facts)
    for number in range(SEEDS, MORE):
        if result.verdict == Certainty.SURE or not facts.places or not facts.of(*_MAY_BE_TOUCHED):
            break
        player.part(number)
        if (number + 1) % _EVERY == 0:
            facts = compared(player.branches, noise)
            result = proposed(facts)
    return _timed(result, player, start)


def _timed(result: PlayResult, player: Player, start: float) -> PlayResult:
    proposals = [
        result.proposed[name] for name in ("agent", "surrounding") if name in result.proposed
    ]
    columns = [column for proposal in proposals for column in proposal.columns]
    starts = [(b.rows[0], b.twin[0]) for b in player.branches if b.twin is not None]
    if columns and any((a != b)[columns].any() for a, b in starts):
        why = "one seed begins differently each time: let reset draw from self.np_random alone"
        result = result._replace(verdict=Certainty.LIKELY, why=why)
    rate = player.steps / max(player.seconds, 1e-9)
    seconds = time.monotonic() - start
    return result._replace(steps=player.steps, seconds=seconds, rate=rate, fault=player.fault)


def played_at_random(envs: LockstepEnvs) -> list[Rows]:
    """Returns the observations of some episodes of random actions, [T + 1, O] each."""
    player, random = Player(envs), np.random.default_rng(0)
    return [
        player.play(number, lambda _: random.uniform(-1.0, 1.0, player.size), player.length).rows
        for number in range(_EPISODES)
    ]


def share_moved(episodes: Sequence[Rows], columns: Columns) -> float:
    """Returns in which share of the steps any of some columns moves: 0.1 of FetchPush's block."""
    chosen = list(columns)
    most = MOVED * ANSWER * deviations(np.concatenate(episodes))[chosen]
    changes = np.concatenate([np.abs(np.diff(rows[:, chosen], axis=0)) for rows in episodes])
    return float((changes > most).any(axis=1).mean()) if len(changes) else 0.0


def repeated(player: Player) -> Rows:
    """Plays some beginnings again, and returns twice what columns differ by, [O]."""
    gaps = []
    for branch in [branch for branch in player.branches if branch.twin is None][:4]:
        actions = branch.actions  # all: `unwrapped` needs equal episodes
        again = player.play(branch.seed_index, replaying(actions), len(actions)).rows[:4]
        gaps.append(np.median(np.abs(branch.rows[: len(again)] - again), axis=0))
    twice: Rows = 2.0 * np.max(gaps, axis=0)
    return twice


def windows(columns: Sequence[int], size: int) -> Iterator[Columns]:
    for first in columns:
        window = tuple(range(first, first + size))
        if set(window) <= set(columns):
            yield window


def first_touch(branch: Branch, thing: Columns, tolerance: Rows) -> int | None:
    """Returns the step of a branch after which a thing was first touched; None if it never was."""
    columns = list(thing)
    gaps = np.abs(branch.difference_from_twin()[:, columns])
    touched = (gaps > MOVED * tolerance[columns]).any(axis=1)
    return branch.at + 1 + int(touched.argmax()) if touched.any() else None


def matched(facts: ColumnFacts, gripper: Columns, thing: Columns) -> Match | None:
    """Returns what speaks for a gripper that moves a thing; None where nothing does."""
    g, o, least = list(gripper), list(thing), MOVED * facts.tolerance[list(thing)]
    steps = [(branch, first_touch(branch, thing, facts.tolerance)) for branch in facts.branches]
    touched = [(branch, branch.rows[step]) for branch, step in steps if step is not None]
    if not touched:
        return None
    rows = np.concatenate([branch.rows for branch in facts.branches])
    at_touch = np.array([row for _, row in touched])
    usual, off = (np.median(np.abs(r[:, o] - r[:, g]), axis=0) for r in (rows, at_touch))
    related = [pair in facts.differences for pair in zip(thing, gripper, strict=True)]
    is_goal = set(thing) <= set(facts.goal)
    near = off[-1] < min(_NEAR * usual[-1], 2.0 * off[:2].max())
    if len(thing) == _WAYS and not (near or related[-1] or is_goal):
        return None  # the third is a stranger
    changes = np.concatenate([np.diff(branch.rows, axis=0) for branch, _ in touched])
    moving = changes[(np.abs(changes[:, o]) > least).any(axis=1)]
    alike = np.abs(np.diag(correlations(moving[:, o], moving[:, g])))[:2]
    along = float(alike.mean()) if len(moving) > _FEW else 0.0
    close = float(np.linalg.norm(off) / np.maximum(np.linalg.norm(usual), 1e-12))
    shared = sum(related) / len(thing)
    evidence = {
        f"it begins to move at {close:.2f} of the usual distance to the robot": close < _NEAR,
        f"it moves along with them (correlation {along:.2f})": along > _ALONG,
        "other columns are their difference": shared > _SHARED,
    }
    why = [text for text, holds in evidence.items() if holds]
    score = shared + along + (1.0 - min(close, 1.0)) + 0.2 * len(o)
    if why and is_goal:
        why.append("it is the achieved goal")
        score += 1.0
    return Match(gripper, thing, score, len(touched), tuple(why)) if why else None


def matches(facts: ColumnFacts) -> list[Match]:
    """Returns all pairs of groups that something relates, the likeliest first."""
    touched = facts.of(Kind.OBJECT)
    if set(touched) & set(facts.goal):  # a block that is pushed about keeps its height
        touched = sorted({*touched, *facts.goal})
    things = [c for c in touched if c not in facts.turned]
    flat = facts.branches[0].actions.shape[1] > 1 and len(facts.places) > 1
    pairs = [
        matched(facts, gripper, thing)
        for size in ((3, 2) if flat else (1,))
        for gripper, thing in itertools.product(windows(facts.places, size), windows(things, size))
    ]
    return sorted(filter(None, pairs), key=lambda match: match.score, reverse=True)


def proposed(facts: ColumnFacts) -> PlayResult:
    """Says which columns to name, or that nothing shows it."""
    ranked = matches(facts)
    result = pushed(facts, ranked) if ranked else held(facts) or nothing_pushed(facts)
    return result._replace(relations={**facts.derived, **facts.turned, **result.relations})


def pushed(facts: ColumnFacts, ranked: Sequence[Match]) -> PlayResult:
    best = ranked[0]
    others: list[Columns] = []
    for match in ranked[1:]:
        overlaps = any(set(match.thing) & set(thing) for thing in (best.thing, *others))
        if match.gripper == best.gripper and not overlaps:
            others.append(match.thing)
    moving, moved = listed(best.gripper), listed(best.thing)
    reasons = {
        "agent": Proposal(best.gripper, f"{moving} respond to the action at once"),
        "surrounding": Proposal(best.thing, f"{moved} rest until touched ({best.touches} times)"),
        "object": Proposal(best.thing, "; ".join(best.why)),
        "gripper": Proposal(best.gripper, f"{moving} are what moves {moved}"),
        "descriptor": Proposal(best.thing, "skills differ by where they bring the object"),
    }
    enough = len(best.why) > 1 and best.touches >= _TOUCHES
    verdict = Certainty.SURE if enough else Certainty.LIKELY
    related = zip(best.thing, best.gripper, strict=True)
    pairs = [pair for pair in related if pair in facts.differences]
    relations = {facts.differences[pair]: "difference of {} and {}".format(*pair) for pair in pairs}
    return PlayResult(facts.kinds, relations, verdict, "", reasons, others)


def held(facts: ColumnFacts) -> PlayResult | None:
    """Proposes the achieved goal as an object that lies in a hand, where it answers one-sidedly."""
    goal, robots = facts.goal, facts.of(Kind.ROBOT)
    joints = [c for c in robots if c not in goal]
    if not joints or not goal or not set(goal) <= set(robots):
        return None
    sided = one_sided(facts.branches)
    if np.median(sided[list(goal)]) <= max(_ONE_SIDED, 2.0 * np.median(sided[joints])):
        return None
    why = f"{listed(goal)} are the achieved goal, and an action and its opposite push it alike"
    proposals = {
        "agent": Proposal(tuple(joints), f"{listed(joints)} respond at once, both ways"),
        "surrounding": Proposal(goal, why),
        "object": Proposal(goal[:_WAYS], why),
        "descriptor": Proposal(goal, "skills differ by where they bring the object"),
    }
    return PlayResult(facts.kinds, {}, Certainty.LIKELY, "", proposals)


def nothing_pushed(facts: ColumnFacts) -> PlayResult:
    """Explains why no object is proposed; proposes a skill descriptor without one."""
    kinds, goal, verdict = facts.kinds, facts.goal, Certainty.CANNOT_TELL
    if not {Kind.ROBOT, Kind.SWING} & set(kinds):
        why = "no column responds to an action at once"
        if Kind.NOISE in kinds:
            why = "one seed gives different episodes: reset and step draw only from self.np_random"
        return PlayResult(kinds, {}, verdict, why, {})
    things, rest = facts.of(Kind.OBJECT), [c for c in facts.of(Kind.REST) if c not in goal]
    if things:
        why = f"{listed(things)} moved at times, and no columns of the robot were seen to move them"
    elif rest:
        why = f"nothing that was played moved {listed(rest)}: a goal, or an object out of reach"
    else:
        verdict = Certainty.NO_OBJECT
        why = (
            "no column rests until touched: there is no object, it has no columns of its own, or "
            "it is held from the start"
        )
    columns: tuple[int | str, ...] = ("observation",)
    reason = "skills differ by all that is observed"
    if facts.branches[0].goals.shape[1]:
        columns, reason = goal or ("achieved_goal",), "skills differ by what they achieve"
    elif 0 < len(facts.movable) <= _WAYS and not facts.turned and not things:
        columns = tuple(facts.movable)
        reason = f"{listed(columns)} are the places that respond to the action"
    return PlayResult(kinds, {}, verdict, why, {"descriptor": Proposal(columns, reason)})


def listed(columns: Iterable[int | str]) -> str:
    return " ".join(map(str, columns))
