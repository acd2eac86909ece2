"""What the fields of a study file can hold; anything else is refused where it is written."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from music_tf.errors import UsageError


def _no_hint(value: Any) -> str:
    return ""


class Kind(NamedTuple):
    """What a field can hold."""

    expected: str
    """In words, with an example."""
    fits: Callable[[Any], bool]
    hint: Callable[[Any], str] = _no_hint
    """Makes of what came what may have been meant; empty where it cannot tell."""


def check(owner: object, **kinds: Kind) -> None:
    """Looks at fields of a Task, a Condition or a Study.

    Raises:
        UsageError: One holds something else; the text says what was expected and what came.
    """
    label = getattr(owner, "name", getattr(owner, "env_id", ""))
    title = f"{type(owner).__name__} {label if isinstance(label, str) else ''}".strip()[:80]
    for name, kind in kinds.items():
        value = getattr(owner, name)
        if not kind.fits(value):
            meant = kind.hint(value)[:80]
            hint = f"\ndid you mean {meant}?" if meant else ""
            raise UsageError(f"{title}: {name}: expected {kind.expected}, got {value!r:.80}{hint}")


def several(member: type, example: str) -> Kind:
    """Returns the kind of a field that holds things of one type, a text or a dataclass."""
    return Kind(
        f"a tuple or list, as in ({example},)",
        lambda value: _are(member, value),
        lambda value: f"({example},) with the comma" if isinstance(value, member) else "",
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _are(member: type, value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(isinstance(item, member) for item in value)


def _are_seeds(value: Any) -> bool:
    return _are(int, value) and all(map(_is_whole, value))


def _are_epochs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(env_id, str) and _is_whole(epochs) for env_id, epochs in value.items()
    )


def _is_command_line(value: Any) -> bool:
    try:
        return isinstance(value, str) and isinstance(shlex.split(value), list)
    except ValueError:
        return False


TEXT = Kind("a text", lambda value: isinstance(value, str))
WHOLE_OR_NONE = Kind("a whole number or None", lambda value: value is None or _is_whole(value))
NUMBER_OR_NONE = Kind("a number or None", lambda value: value is None or _is_number(value))
SEEDS = Kind(
    "whole numbers, as in range(5) or (0, 1, 2)",
    _are_seeds,
    lambda value: f"range({value})" if _is_whole(value) else "",
)
EPOCHS = Kind(
    "whole numbers by environment, as in {'FetchPush-v4': 25}",
    _are_epochs,
    lambda value: f"{{'FetchPush-v4': {value}}}" if _is_whole(value) else "",
)
COMMAND_LINE = Kind(
    "options in one text with its quotes closed, as in '--music.gain 500'",
    _is_command_line,
    lambda value: repr(shlex.join(value)) if _are(str, value) else "",
)
