"""Splits a command line into positional words and options with their values."""

from collections.abc import Mapping
from typing import NamedTuple

from music_tf.config.names import nearest
from music_tf.errors import UsageError

_RENAMED = {
    "music.agent": "world.agent",
    "music.surrounding": "world.surrounding",
    "skill.components": "world.descriptor",
}


class Words(NamedTuple):
    """A command line taken apart; option names as in the configuration, with underscores."""

    positional: tuple[str, ...]
    options: dict[str, tuple[str, ...]]


def split(arguments: tuple[str, ...], counts: Mapping[str, int | None]) -> Words:
    """Splits a command line; `--name V`, `--name=V`, and `-` or `_` in names are the same.

    Args:
        arguments: The words of the command line.
        counts: How many values each option takes; None for any number.

    Raises:
        UsageError: An option is unknown or lacks values.
    """
    positional: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not _is_option(word):
            positional.append(word)
            continue
        written, equals, value = word.partition("=")
        name = _known_name(written, counts)
        values = [value] if equals else []
        wanted = counts[name]
        while rest and not _is_option(rest[0]) and (wanted is None or len(values) < wanted):
            values.append(rest.pop(0))
        if wanted is not None and len(values) != wanted:
            raise UsageError(f"{show_option(name)}: {_count_fault(wanted, len(values))}")
        options[name] = tuple(values)
    return Words(tuple(positional), options)


def show_option(name: str) -> str:
    """Returns a setting's name as an option."""
    return "--" + name.replace("_", "-")


def _known_name(written: str, counts: Mapping[str, int | None]) -> str:
    name = written[2:].replace("-", "_")
    if written.startswith("--") and name in counts:
        return name
    fault = f"unknown option {written[:80]!r}"
    if name in _RENAMED:
        raise UsageError(f"{fault}\nit is called {show_option(_RENAMED[name])} now")
    inside = [known for known in counts if known.endswith(f".{name}")] if name else []
    if inside:
        raise UsageError(f"{fault}\ndid you mean {' or '.join(map(show_option, inside))}?")
    found = nearest(written.lstrip("-").replace("-", "_"), counts)
    cure = f"did you mean {show_option(found)}?" if found else "--help lists the valid ones"
    raise UsageError(f"{fault}\n{cure}")


def _is_option(word: str) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _count_fault(wanted: int, came: int) -> str:
    if wanted == 0:
        return "takes no value"
    values = "a value" if wanted == 1 else f"{wanted} values"
    return f"expected {values}, got {came or 'none'}"
