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

from music_tf.envs.kinds import ANSWER, MOVED, ColumnFacts, Kind, compared, correlations, deviations
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.twins import Branch, Columns, Player, Rows, given
from music_tf.errors import UsageError

SEEDS, MORE, SHORT = 16, 64, 5
"""Seeds at first and at most, and steps that are too few for an episode."""
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
    """Kind of each column."""
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
    """Plays some thousand steps and says what the columns are.

    Args:
        envs: One environment; it is reset with other seeds.
        first: The first of these seeds.

    Raises:
        UsageError: Episodes are too short.
        MusicError: The environment does not reset.
    """
    begun, player = time.monotonic(), Player(envs, first)
    for number in range(SEEDS):
        player.part(number)
    longest = max(len(one.actions) for one in player.branches)
    if sum(len(one.actions) - one.at > SHORT for one in player.branches) < 2 * SEEDS:
        broke = f"; {player.fault}" if player.fault else ""
        raise UsageError(f"expected episodes of more than {SHORT} steps, got {longest}{broke}")
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


def windows(columns: Sequence[int], size: int, last: Sequence[int] = ()) -> Iterator[Columns]:
    """Yields neighbours among columns; the third of three may be one of others."""
    for first in columns:
        window = tuple(range(first, first + size))
        spare = last if size == _WAYS else ()
        if set(window[:-1]) <= set(columns) and (window[-1] in columns or window[-1] in spare):
            yield window


def drive_around(player: Player, seen: ColumnFacts) -> None:
    """Drives what could be a gripper to what could be an object, until one is moved by it."""
    rows = np.concatenate([one.rows for one in player.branches])
    low, high, middle = rows.min(axis=0), rows.max(axis=0), np.median(rows, axis=0)
    span = high - low
    rest = seen.of(Kind.REST, Kind.SETTLE, Kind.OBJECT, Kind.PULSE, Kind.CONSTANT)
    pairs: list[tuple[int, int, int, float, Columns, Columns]] = []
    for size in (3, 2) if player.size > 1 else (1,):
        for own, target in itertools.product(windows(seen.places, size), windows(rest, size)):
            robot, aim = list(own), middle[list(target)]
            margin = 0.5 * span[robot]
            inside = (aim > low[robot] - margin) & (aim < high[robot] + margin)
            if inside.all() and span[robot].all():
                known = sum(_related(seen.sums, t, r) for t, r in zip(target, own, strict=True))
                fixed = [seen.kinds[t] for t in target].count(Kind.CONSTANT)
                apart = float((np.abs(middle[robot] - aim) / span[robot]).max())
                pairs.append((fixed, -known, -size, apart, own, target))
    some = [pair for pair in sorted(pairs) if not pair[0]] or sorted(pairs)[: _PAIRS // 4]
    for *_, own, target in some[:_PAIRS]:
        most = MOVED * seen.answers.tolerance[list(target)]
        tries = player.drive(own, target, seen.places, range(_TRIES))
        hits = sum((np.abs(one.apart()[:, list(target)]) > most).any() for one in tries)
        if 2 * hits > _TRIES:
            player.drive(own, target, seen.places, range(_TRIES, _TRIES + _AGAIN))
            break


def _related(sums: Iterable[tuple[int, int, int]], thing: int, robot: int) -> bool:
    return any(thing == a and robot in (b, c) for a, b, c in sums)


def touches(
    branches: Iterable[Branch], thing: Columns, tolerance: Rows
) -> tuple[list[Rows], list[Rows]]:
    """Returns states in which a thing was first touched, one for each branch that touched it.

    And changes [N, O] of all columns in steps of these branches that moved it.
    """
    own, states, changes = list(thing), [], []
    most = MOVED * tolerance[own]
    for one in branches:
        touched = (np.abs(one.apart()[:, own]) > most).any(axis=1)
        if touched.any():
            states.append(one.rows[one.at + 1 + int(touched.argmax())])
            step = np.diff(one.rows, axis=0)
            changes.append(step[(np.abs(step[:, own]) > most).any(axis=1)])
    return states, changes


def matched(seen: ColumnFacts, grip: Columns, thing: Columns) -> Match | None:
    """Returns what speaks for a gripper that moves a thing; None where nothing does."""
    g, o, tolerance = list(grip), list(thing), seen.answers.tolerance
    if set(g) & set(o):
        return None
    at, changes = touches(seen.branches, thing, tolerance)
    if not at:
        return None
    chance = [one for one in seen.branches if one.at_random]
    free, _ = touches(chance, thing, tolerance)
    mine = [one for one in seen.branches if _drives(one, grip, thing)]
    hits = len(touches(mine, thing, tolerance)[0])
    states = np.concatenate([one.rows for one in seen.branches])
    touched = np.array(free if len(free) > _TOUCHES // 2 else at)
    usual = np.median(np.abs(states[:, o] - states[:, g]), axis=0)
    off = np.median(np.abs(touched[:, o] - touched[:, g]), axis=0)
    near_at_last = off[-1] < min(_NEAR * usual[-1], 2.0 * off[:-1].max(initial=0.0))
    if len(o) == _WAYS and not _is_height(seen, g[-1], o, near_at_last):
        return None
    moving = np.concatenate(changes)
    pairs, related = list(zip(o, g, strict=True)), set(seen.relative.values())
    along = float(np.mean([_alike(moving[:, a], moving[:, b]) for a, b in pairs[:2]]))
    close = float(np.linalg.norm(off) / np.maximum(np.linalg.norm(usual), 1e-12))
    reached = hits / max(len(mine), 1)
    shared = sum(pair in related for pair in pairs) / len(o)
    by_chance = f"at random in {len(free)} of {len(chance)}"
    evidence = {
        f"when it begins to move they are {close:.2f} times as far apart as usual": close < _NEAR,
        f"it moves along with them (correlation {along:.2f})": along > _ALONG,
        f"driven there they moved it in {hits} of {len(mine)} tries, {by_chance}": hits
        > _TOUCHES // 2
        and reached > max(_SELDOM, 2.0 * len(free) / len(chance)),
        "other columns are their difference": shared > _SELDOM,
    }
    why = [text for text, holds in evidence.items() if holds]
    score = shared + along + (1.0 - min(close, 1.0)) + 0.2 * len(o) + reached
    if why and set(o) <= set(seen.goal):
        why.append("it is the achieved goal")
        score += 1.0
    return Match(grip, thing, score, len(free) + hits, tuple(why)) if why else None


def _drives(one: Branch, grip: Columns, thing: Columns) -> bool:
    """Whether a branch drives some of these columns to some of those."""
    return bool(one.driven and set(one.driven[0]) & set(grip) and set(one.driven[1]) & set(thing))


def _is_height(seen: ColumnFacts, robot: int, thing: Sequence[int], near: bool) -> bool:
    """Whether the third column of a thing belongs to it: it may be a stranger beside two."""
    last = thing[-1]
    if (last, robot) in seen.relative.values() or set(thing) <= set(seen.goal):
        return True
    touched = seen.kinds[last] in (Kind.OBJECT, Kind.PULSE)
    return near and touched and seen.kinds[robot] == Kind.ROBOT


def _alike(a: Rows, b: Rows) -> float:
    if len(a) <= _FEW:
        return 0.0
    return abs(float(correlations(a[:, None], b[:, None])[0, 0]))


def matches(seen: ColumnFacts) -> list[Match]:
    """Returns all pairs of groups that something relates, the likeliest first."""
    things = [c for c in seen.of(Kind.OBJECT) if c not in seen.turned]
    spare = seen.of(Kind.PULSE, Kind.MOVER, Kind.SETTLE, Kind.REST, Kind.CONSTANT)
    flat = seen.branches[0].actions.shape[1] > 1 and len(seen.places) > 1
    found = []
    for size in (3, 2) if flat else (1,):
        grips, groups = windows(seen.places, size, spare), windows(things, size, spare)
        found += [matched(seen, *pair) for pair in itertools.product(grips, groups)]
    return sorted(filter(None, found), key=lambda one: one.score, reverse=True)


def whole(seen: ColumnFacts, best: Match) -> Match:
    """Returns a match with a neighbour on either side that is related as the others are."""
    grip, thing, related = best.grip, best.thing, set(seen.relative.values())
    after = (thing[-1] + 1, grip[-1] + 1)
    if len(seen.goal) == _WAYS and after[0] in seen.goal and after[1] in seen.places:
        related.add(after)
    if len(grip) == 2:  # noqa: PLR2004
        if (thing[0] - 1, grip[0] - 1) in related:
            grip, thing = (grip[0] - 1, *grip), (thing[0] - 1, *thing)
        elif after in related:
            grip, thing = (*grip, after[1]), (*thing, after[0])
    return best._replace(grip=grip, thing=thing)


def proposed(seen: ColumnFacts) -> Found:
    """Says which columns to name, or that nothing shows it."""
    relations = {**seen.derived, **seen.turned}
    relations |= {c: f"{thing} minus {own}" for c, (thing, own) in seen.relative.items()}
    ranked = matches(seen)
    found = pushed(seen, ranked) if ranked else held(seen) or nothing_pushed(seen)
    return found._replace(relations=relations)


def pushed(seen: ColumnFacts, ranked: Sequence[Match]) -> Found:
    """Proposes the likeliest pair of groups."""
    best = whole(seen, ranked[0])
    others: list[Columns] = []
    for one in ranked[1:]:
        if not any(set(one.thing) & set(had) for had in (best.thing, *others)):
            others.append(one.thing)
    agent = f"{listed(best.grip)} answer the action at once"
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
    return Found(seen.kinds, {}, verdict, "", reasons, others)


def held(seen: ColumnFacts) -> Found | None:
    """Proposes the achieved goal as an object that lies in a hand, where it answers one-sidedly."""
    goal, joints = seen.goal, [c for c in seen.joints if c not in seen.goal]
    if not joints or any(c not in seen.of(Kind.ROBOT) for c in goal) or not goal:
        return None
    sided = seen.answers.one_sided
    if np.median(sided[list(goal)]) <= max(_ONE_SIDED, 2.0 * np.median(sided[joints])):
        return None
    why = f"{listed(goal)} are the achieved goal, and an action and its opposite push it alike"
    proposals = {
        "agent": Proposal(tuple(joints), f"{listed(joints)} answer at once and both ways"),
        "surrounding": Proposal(goal, why),
        "object": Proposal(goal[:_WAYS], why),
        "descriptor": Proposal(goal, "skills differ by where they bring the object"),
    }
    return Found(seen.kinds, {}, Certainty.LIKELY, "", proposals)


def nothing_pushed(seen: ColumnFacts) -> Found:
    """Says why no object is proposed, and what skills can be told apart by all the same."""
    kinds, goal, verdict = seen.kinds, seen.goal, Certainty.CANNOT_TELL
    rest = [c for c in seen.of(Kind.REST) if c not in goal]
    things = seen.of(Kind.OBJECT)
    if Kind.ROBOT not in kinds:
        why = "no column answers an action"
        if Kind.NOISE in kinds:
            why = "one seed gives different episodes: reset and step draw only from self.np_random"
        return Found(kinds, {}, verdict, why, {})
    if things:
        why = f"{listed(things)} move now and then, and nothing shows with what of the robot"
    elif rest:
        why = f"{listed(rest)} rest, and nothing that was played moved them: goals, or out of reach"
    else:
        verdict = Certainty.NO_OBJECT
        why = "nothing rests until it is touched: there is no object, or it is seen with others"
    few = 0 < len(seen.places) <= _WAYS and not seen.turned and not things
    reason = "skills differ by all that is observed"
    columns: tuple[int | str, ...] = ("observation",)
    if seen.branches[0].goals.shape[1]:
        columns, reason = goal or ("achieved_goal",), "skills differ by what they achieve"
    elif few:
        columns = tuple(seen.places)
        reason = f"{listed(columns)} are the places that answer the action"
    return Found(kinds, {}, verdict, why, {"descriptor": Proposal(columns, reason)})


def listed(columns: Iterable[int | str]) -> str:
    """Returns columns as they are typed."""
    return " ".join(map(str, columns))
