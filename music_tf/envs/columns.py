"""Which columns of an observation to name: the robot, its surroundings, an object, a gripper.

Found by playing, see `envs.twins` and `envs.kinds`. Then the robot is driven to whatever could be
an object. Nothing is proposed without evidence.
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
from music_tf.envs.twins import Branch, Columns, Player, Rows, given
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
_TOUCHES, _PAIRS, _TRIES, _AGAIN = 6, 24, 4, 8
"""Touches that are enough; pairs that are driven together, how often, and again where it worked."""
_NEAR, _ALONG, _SELDOM = 0.6, 0.4, 0.5
"""Distance at a touch as a share of the usual one, correlation of changes, and share of tries or
axes beyond which they count."""
_WAYS = 3
"""Most axes of a place."""
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


class Found(NamedTuple):
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

    grip: Columns
    thing: Columns
    score: float
    touches: int
    why: tuple[str, ...]


def look(envs: LockstepEnvs, first: int = 0) -> Found:
    """Plays one environment some thousand steps, seeds from `first` on; says what columns are."""
    begun, player = time.monotonic(), Player(envs, first)
    for number in range(SEEDS):
        player.part(number)
    longest = max(len(one.actions) for one in player.branches)
    usable = sum(len(one.actions) - one.at > SHORT for one in player.branches)
    if longest <= SHORT or (usable < _LEAST and player.fault):
        broke = f"; {player.fault}" if player.fault else ""
        raise UsageError(f"expected episodes of more than {SHORT} steps, got {longest}{broke}")
    if usable < _LEAST:
        why = (
            f"{usable} of {len(player.branches)} episodes went on for more than {SHORT} steps "
            f"after their actions parted, and {_LEAST} are needed"
        )
        return _timed(Found((), {}, Certainty.CANNOT_TELL, why, {}), player, begun)
    noise = repeated(player)
    seen = compared(player.branches, noise)
    found = proposed(seen)
    if seen.places and found.verdict != Certainty.SURE:
        drive_around(player, seen)
        found = proposed(compared(player.branches, noise))
    for number in range(SEEDS, MORE):
        if found.verdict == Certainty.SURE or Kind.OBJECT not in found.kinds:
            break
        player.part(number)
        if number % 8 == 7:  # noqa: PLR2004
            found = proposed(compared(player.branches, noise))
    return _timed(found, player, begun)


def _timed(found: Found, player: Player, begun: float) -> Found:
    """Returns what was found with steps, seconds and faults of the player."""
    columns = [c for name in ("agent", "surrounding") for c in found.proposed.get(name, ((),))[0]]
    twins = [(one.rows[0], one.twin[0]) for one in player.branches if one.twin is not None]
    if found.verdict == Certainty.SURE and any((a != b)[columns].any() for a, b in twins):
        why = "one seed begins differently each time: let reset draw from self.np_random alone"
        found = found._replace(verdict=Certainty.LIKELY, why=why)
    rate = player.steps / max(player.seconds, 1e-9)
    seconds = time.monotonic() - begun
    return found._replace(steps=player.steps, seconds=seconds, rate=rate, fault=player.fault)


def played_at_random(envs: LockstepEnvs) -> list[Rows]:
    """Returns the observations of some episodes of random actions, [T + 1, O] each."""
    player, random = Player(envs), np.random.default_rng(0)
    return [
        player.play(number, lambda _: random.uniform(-1.0, 1.0, player.size), player.length).rows
        for number in range(_EPISODES)
    ]


def share_moved(episodes: Sequence[Rows], columns: Columns) -> float:
    """Returns in which share of the steps of episodes any of some columns moves.

    Of a thing that has to be pushed it is small: 0.1 on FetchPush.
    """
    own = list(columns)
    most = MOVED * ANSWER * deviations(np.concatenate(episodes))[own]
    changes = np.concatenate([np.abs(np.diff(rows[:, own], axis=0)) for rows in episodes])
    return float((changes > most).any(axis=1).mean()) if len(changes) else 0.0


def repeated(player: Player) -> Rows:
    """Plays some beginnings again, and returns twice what columns differ by, [O]."""
    gaps = []
    for one in [branch for branch in player.branches if branch.twin is None][:4]:
        again = player.play(one.number, given(one.actions[:3]), min(3, len(one.actions))).rows
        gaps.append(np.median(np.abs(one.rows[: len(again)] - again), axis=0))
    twice: Rows = 2.0 * np.max(gaps, axis=0)
    return twice


def windows(columns: Sequence[int], size: int) -> Iterator[Columns]:
    """Yields neighbours among columns."""
    for first in columns:
        window = tuple(range(first, first + size))
        if set(window) <= set(columns):
            yield window


def drive_around(player: Player, seen: ColumnFacts) -> None:
    """Drives what could be a gripper to what could be an object, until one is moved by it."""
    rows = np.concatenate([one.rows for one in player.branches])
    middle, span = np.median(rows, axis=0), np.ptp(rows, axis=0)
    rest = seen.of(Kind.REST, Kind.SETTLE, Kind.OBJECT, Kind.PULSE, Kind.CONSTANT)
    pairs: list[tuple[int, int, int, float, Columns, Columns]] = []
    for size in (3, 2) if player.size > 1 else (1,):
        for own, target in itertools.product(windows(seen.places, size), windows(rest, size)):
            off = np.abs(middle[list(own)] - middle[list(target)])
            apart = float((off / np.maximum(span[list(own)], 1e-300)).max())
            known = sum(pair in seen.differences for pair in zip(target, own, strict=True))
            fixed = [seen.kinds[t] for t in target].count(Kind.CONSTANT)
            if apart <= 1.0:
                pairs.append((fixed, -known, -size, apart, own, target))
    some = [pair for pair in sorted(pairs) if not pair[0]] or sorted(pairs)[: _PAIRS // 4]
    for *_, own, target in some[:_PAIRS]:
        tries = player.drive(own, target, seen.places, range(_TRIES))
        hits = sum(first_touch(one, target, seen.tolerance) is not None for one in tries)
        if 2 * hits > _TRIES:
            player.drive(own, target, seen.places, range(_TRIES, _TRIES + _AGAIN))
            break


def first_touch(one: Branch, thing: Columns, tolerance: Rows) -> int | None:
    """Returns the step of a branch after which a thing was first touched; None if it never was."""
    own = list(thing)
    touched = (np.abs(one.apart()[:, own]) > MOVED * tolerance[own]).any(axis=1)
    return one.at + 1 + int(touched.argmax()) if touched.any() else None


def matched(seen: ColumnFacts, grip: Columns, thing: Columns) -> Match | None:
    """Returns what speaks for a gripper that moves a thing; None where nothing does."""
    g, o, least = list(grip), list(thing), MOVED * seen.tolerance[list(thing)]
    steps = [(one, first_touch(one, thing, seen.tolerance)) for one in seen.branches]
    touched = [(one, one.rows[step]) for one, step in steps if step is not None]
    if not touched:
        return None
    driven = sum(_drives(one, grip, thing) for one in seen.branches)
    hits = sum(_drives(one, grip, thing) for one, _ in touched)
    chance = sum(one.at_random for one in seen.branches)
    free = [row for one, row in touched if one.at_random]
    ends = np.array(free if len(free) > _TOUCHES // 2 else [row for _, row in touched])
    rows = np.concatenate([one.rows for one in seen.branches])
    usual, off = (np.median(np.abs(r[:, o] - r[:, g]), axis=0) for r in (rows, ends))
    related = [pair in seen.differences for pair in zip(thing, grip, strict=True)]
    is_goal = set(thing) <= set(seen.goal)
    near = off[-1] < min(_NEAR * usual[-1], 2.0 * off[:2].max())
    if len(thing) == _WAYS and not (near or related[-1] or is_goal):
        return None  # the third is a stranger
    changes = np.concatenate([np.diff(one.rows, axis=0) for one, _ in touched])
    moving = changes[(np.abs(changes[:, o]) > least).any(axis=1)]
    alike = np.abs(np.diag(correlations(moving[:, o], moving[:, g])))[:2]
    along = float(alike.mean()) if len(moving) > _FEW else 0.0
    close = float(np.linalg.norm(off) / np.maximum(np.linalg.norm(usual), 1e-12))
    reached, shared = hits / max(driven, 1), sum(related) / len(thing)
    by_chance = f"at random in {len(free)} of {chance}"
    evidence = {
        f"it begins to move at {close:.2f} of the usual distance to the robot": close < _NEAR,
        f"it moves along with them (correlation {along:.2f})": along > _ALONG,
        f"driven there they moved it in {hits} of {driven} tries, {by_chance}": hits > _TOUCHES // 2
        and reached > max(_SELDOM, 2.0 * len(free) / chance),
        "other columns are their difference": shared > _SELDOM,
    }
    why = [text for text, holds in evidence.items() if holds]
    score = shared + along + (1.0 - min(close, 1.0)) + 0.2 * len(o) + reached
    if why and is_goal:
        why.append("it is the achieved goal")
        score += 1.0
    return Match(grip, thing, score, len(free) + hits, tuple(why)) if why else None


def _drives(one: Branch, grip: Columns, thing: Columns) -> bool:
    """Whether a branch drives some of these columns to some of those."""
    return bool(one.driven and set(one.driven[0]) & set(grip) and set(one.driven[1]) & set(thing))


def matches(seen: ColumnFacts) -> list[Match]:
    """Returns all pairs of groups that something relates, the likeliest first."""
    things = [c for c in seen.of(Kind.OBJECT) if c not in seen.turned]
    flat = seen.branches[0].actions.shape[1] > 1 and len(seen.places) > 1
    found = [
        matched(seen, grip, thing)
        for size in ((3, 2) if flat else (1,))
        for grip, thing in itertools.product(windows(seen.places, size), windows(things, size))
    ]
    return sorted(filter(None, found), key=lambda one: one.score, reverse=True)


def proposed(seen: ColumnFacts) -> Found:
    """Says which columns to name, or that nothing shows it."""
    ranked = matches(seen)
    found = pushed(seen, ranked) if ranked else held(seen) or nothing_pushed(seen)
    return found._replace(relations={**seen.derived, **seen.turned, **found.relations})


def pushed(seen: ColumnFacts, ranked: Sequence[Match]) -> Found:
    """Proposes the likeliest pair of groups."""
    best = ranked[0]
    others: list[Columns] = []
    for one in ranked[1:]:
        apart = not any(set(one.thing) & set(had) for had in (best.thing, *others))
        if one.grip == best.grip and apart:
            others.append(one.thing)
    agent = f"{listed(best.grip)} respond to the action at once"
    thing = f"{listed(best.thing)} rest until touched ({best.touches} times)"
    reasons = {
        "agent": Proposal(best.grip, agent),
        "surrounding": Proposal(best.thing, thing),
        "object": Proposal(best.thing, "; ".join(best.why)),
        "gripper": Proposal(best.grip, f"{listed(best.grip)} are what moves {listed(best.thing)}"),
        "descriptor": Proposal(best.thing, "skills differ by where they bring the object"),
    }
    enough = len(best.why) > 1 and best.touches >= _TOUCHES
    verdict = Certainty.SURE if enough else Certainty.LIKELY
    pairs = [pair for pair in zip(best.thing, best.grip, strict=True) if pair in seen.differences]
    relations = {seen.differences[pair]: "difference of {} and {}".format(*pair) for pair in pairs}
    return Found(seen.kinds, relations, verdict, "", reasons, others)


def held(seen: ColumnFacts) -> Found | None:
    """Proposes the achieved goal as an object that lies in a hand, where it answers one-sidedly."""
    goal, robots = seen.goal, seen.of(Kind.ROBOT)
    joints = [c for c in robots if c not in goal]
    if not joints or not goal or not set(goal) <= set(robots):
        return None
    sided = one_sided(seen.branches)
    if np.median(sided[list(goal)]) <= max(_ONE_SIDED, 2.0 * np.median(sided[joints])):
        return None
    why = f"{listed(goal)} are the achieved goal, and an action and its opposite push it alike"
    proposals = {
        "agent": Proposal(tuple(joints), f"{listed(joints)} respond at once, both ways"),
        "surrounding": Proposal(goal, why),
        "object": Proposal(goal[:_WAYS], why),
        "descriptor": Proposal(goal, "skills differ by where they bring the object"),
    }
    return Found(seen.kinds, {}, Certainty.LIKELY, "", proposals)


def nothing_pushed(seen: ColumnFacts) -> Found:
    """Says why no object is proposed, and what skills can be distinguished by all the same."""
    kinds, goal, verdict = seen.kinds, seen.goal, Certainty.CANNOT_TELL
    if not {Kind.ROBOT, Kind.SWING} & set(kinds):
        why = "no column responds to an action at once"
        if Kind.NOISE in kinds:
            why = "one seed gives different episodes: reset and step draw only from self.np_random"
        return Found(kinds, {}, verdict, why, {})
    things, rest = seen.of(Kind.OBJECT), [c for c in seen.of(Kind.REST) if c not in goal]
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
    if seen.branches[0].goals.shape[1]:
        columns, reason = goal or ("achieved_goal",), "skills differ by what they achieve"
    elif 0 < len(seen.movable) <= _WAYS and not seen.turned and not things:
        columns = tuple(seen.movable)
        reason = f"{listed(columns)} are the places that respond to the action"
    return Found(kinds, {}, verdict, why, {"descriptor": Proposal(columns, reason)})


def listed(columns: Iterable[int | str]) -> str:
    """Returns columns as they are typed."""
    return " ".join(map(str, columns))
