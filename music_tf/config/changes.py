"""Stages of a world that changes while a run learns, as `env.changes` describes them in JSON."""

import itertools
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeAlias

from music_tf.config.names import suggestion
from music_tf.errors import UsageError
from music_tf.hints import fits, read

OPTION = "env.changes"
EVERY = "*"
"""Stands for all bodies, geoms, joints or actuators; a name beside it has priority."""
FACTORS = ("mass", "friction", "damping", "gear")
"""Quantities of a body, a geom, a joint or an actuator that are multiplied."""
SKILL, STEPS = "skill", "steps"
NOW, LEARNED = "now", "learned"
"""Words for the present stage of a run, and for the stage in which each skill was learned. Both
are the same while skills go on learning."""
_EXAMPLE = '[{}, {"at": {"steps": 100000}, "gravity": 0.8}]'
_KEYS = ("at", *FACTORS, "gravity", "place", "set")
_Place: TypeAlias = tuple[float, float, float]
Named: TypeAlias = Mapping[str, Any]


class Stage(NamedTuple):
    """A whole world, relative to the environment's defaults and not to the stage before."""

    at: Mapping[str, int] = MappingProxyType({})
    """When it begins: `SKILL` or `STEPS`, and a number. Empty for the first stage."""
    factors: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    """Factors by quantity, one of `FACTORS`, and MuJoCo name."""
    gravity: float = 1.0  # a factor
    place: Mapping[str, tuple[float, ...]] = MappingProxyType({})  # x, y, z in metres of bodies
    attributes: Mapping[str, Any] = MappingProxyType({})  # named by the environment's `changeable`


def stages_of(text: str) -> tuple[Stage, ...]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{OPTION}: expected stages as JSON, got {text[:80]!r}: {str(error)[:80]}\n"
            f"for example: {_EXAMPLE}"
        ) from error
    if not isinstance(parsed, list):
        raise UsageError(
            f"{OPTION}: expected a list of stages, got {text[:80]}\nfor example: {_EXAMPLE}"
        )
    stages = tuple(_stage(entry, number) for number, entry in enumerate(parsed))
    for kind in (SKILL, STEPS):
        since = [
            (number, stage.at[kind]) for number, stage in enumerate(stages) if kind in stage.at
        ]
        for (_, before), (number, after) in itertools.pairwise(since):
            if after <= before:
                _refuse(number, "at", f"expected {kind} after {before}, got {after}")
    return stages


def stage_at(stages: Sequence[Stage], steps: int, skill: int = 0) -> int:
    """Returns the number of the last stage that has begun after `steps` steps, at a skill."""
    reached = {SKILL: skill, STEPS: steps}
    held = [
        number
        for number, stage in enumerate(stages)
        if all(reached[kind] >= since for kind, since in stage.at.items())
    ]
    return max(held, default=0)


def chosen_stage(
    word: str, stages: Sequence[Stage], now: int, learned: tuple[int, ...] = ()
) -> int | tuple[int, ...]:
    """Returns the stage of a word: the present one, that of each frozen skill, or a number."""
    if word in (NOW, LEARNED):
        return learned if word == LEARNED and learned and stages else now
    if not stages:
        raise UsageError(
            f"--stage: the world of this run never changes, expected {NOW}, got {word[:80]}"
        )
    if not word.isdecimal() or int(word) >= len(stages):
        last = len(stages) - 1
        raise UsageError(
            f"--stage: expected {NOW}, {LEARNED} or a stage from 0 to {last}, got {word[:80]!r}"
        )
    return int(word)


def _stage(entry: Any, number: int) -> Stage:
    if not isinstance(entry, dict):
        _refuse(number, "", f"expected an object with {', '.join(_KEYS)}, got {entry!r:.80}")
    for key in entry:
        if key not in _KEYS:
            expected = f"expected {', '.join(_KEYS)}, got {key[:80]!r}"
            _refuse(number, "", f"{expected}{suggestion(key, _KEYS)}")
    gravity = entry.get("gravity", 1.0)
    if not _is_factor(gravity):
        _refuse(number, "gravity", f"expected a factor of at least 0, got {gravity!r:.80}")
    places = _named(entry, "place", number)
    for name, place in places.items():
        if not fits(place, _Place):
            _refuse(number, f"place: {name}", f"expected x, y and z in metres, got {place!r:.80}")
    return Stage(
        at=_since(entry.get("at"), number),
        factors={kind: factors for kind in FACTORS if (factors := _factors(entry, kind, number))},
        gravity=float(gravity),
        place={name: read(place, _Place) for name, place in places.items()},
        attributes=_named(entry, "set", number),
    )


def _since(at: Any, number: int) -> Mapping[str, int]:
    if number == 0:
        if at is not None:
            _refuse(
                0, "at", "the first stage holds from the start, expected none; put {} before it"
            )
        return {}
    example = 'expected {"steps": N} or, for skills learned one by one, {"skill": N}'
    if not isinstance(at, dict) or len(at) != 1 or not set(at) <= {SKILL, STEPS}:
        _refuse(number, "at", f"{example}; got {at!r:.80}")
    ((kind, since),) = at.items()
    if not fits(since, int) or since < 1:
        _refuse(number, "at", f"{example}, of at least 1; got {since!r:.80}")
    return {kind: since}


def _factors(entry: Named, kind: str, number: int) -> Mapping[str, float]:
    factors = _named(entry, kind, number)
    for name, factor in factors.items():
        if kind == "gear":  # which may be negative
            usable, expected = fits(factor, float), "a number"
        elif kind == "mass":
            usable, expected = _is_factor(factor) and factor > 0, "a factor above 0"
        else:
            usable, expected = _is_factor(factor), "a factor of at least 0"
        if not usable:
            _refuse(number, f"{kind}: {name}", f"expected {expected}, got {factor!r:.80}")
    return {name: float(factor) for name, factor in factors.items()}


def _named(entry: Named, key: str, number: int) -> Named:
    named: Any = entry.get(key, {})
    if not isinstance(named, dict):
        _refuse(number, key, f"expected an object of names and values, got {named!r:.80}")
    return dict(named)


def _is_factor(value: Any) -> bool:
    return fits(value, float) and value >= 0


def _refuse(number: int, where: str, text: str) -> NoReturn:
    raise UsageError(": ".join(filter(None, (f"{OPTION}: stage {number}", where[:80], text))))
