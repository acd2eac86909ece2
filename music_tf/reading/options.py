"""Reads command lines, and writes help and error messages, from the dataclass of a verb.

tyro converts values. Help and messages are our own: what was expected, what came, and the nearest
valid name.
"""

import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import sys
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from music_tf.config.fields import (
    Field,
    Settings,
    describe_type,
    fields_of,
    show_option,
    show_value,
    with_fields,
)
from music_tf.config.names import likely_names, suggestion
from music_tf.config.terms import TermConfig
from music_tf.errors import EXIT_DONE, UsageError
from music_tf.hints import choices_of, is_optional, notes_of

Verb = TypeVar("Verb", bound="Options")
Terms = Mapping[str, type[TermConfig]]
Typed = dict[str, tuple[str, ...]]

Flag: TypeAlias = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""An option without a value, off by default."""

REPEATED = "repeated"
"""Note in the hint of an option whose words add up where it is typed again."""

_WIDTH = 110
_OF_LAUNCH = ("n", "np", "ranks", "restarts", "hosts", "hostfile")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of a verb; a subclass has a field for each, all with defaults."""

    example: ClassVar[str] = ""
    """A valid command line, after `music-tf`."""
    untold: ClassVar[tuple[str, ...]] = ()
    """Beginnings of names of settings that its help leaves out."""


def asks_for_help(arguments: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in ("--help", "-h") for word in arguments)


def last_value(option: str, arguments: Sequence[str]) -> str:
    """Returns the last value of an option on a command line that may be wrong elsewhere."""
    value = ""
    for word, following in itertools.pairwise((*arguments, "")):
        written, equals, text = word.partition("=")
        if written.replace("_", "-") == show_option(option):
            value = text if equals else following
    return value


def read(kind: type[Verb], verb: str, arguments: Sequence[str]) -> Verb:
    default = kind()
    fields = {field.name: field for field in fields_of(default)}
    places = [
        name for name, field in fields.items() if tyro.conf.Positional in notes_of(field.hint)
    ]
    options = {name: field for name, field in fields.items() if name not in places}
    if asks_for_help(arguments):
        usage = " ".join([f"usage: music-tf {verb} [options]", *map(str.upper, places)])
        head = [f"for example: music-tf {kind.example}", "", usage, "", inspect.getdoc(kind) or ""]
        head += [f"\n{name.upper()}: {fields[name].meaning}" for name in places]
        told = [field for name, field in options.items() if not name.startswith(kind.untold)]
        sys.stdout.write("\n".join([*head, "", "options:" * bool(told), *described(told), ""]))
        raise SystemExit(EXIT_DONE)
    words, typed = split(arguments, options)
    several = [name for name in places if words_taken(fields[name].hint) is None]
    if not several and len(words) != len(places):
        expected = (
            f"{places[0].upper()}: expected one" if places else f"{verb}: expected no arguments"
        )
        raise UsageError(
            f"{expected}, got {' '.join(words)[:80]!r}\nfor example: music-tf {kind.example}"
        )
    typed |= dict.fromkeys(places, words)
    with named_as_typed(fields):
        return with_fields(
            default, {name: read_value(fields[name], words) for name, words in typed.items()}
        )


@contextlib.contextmanager
def named_as_typed(options: Container[str]) -> Iterator[None]:
    """Writes the setting at the start of a refusal as its option."""
    try:
        yield
    except UsageError as fault:
        name, colon, text = str(fault).partition(":")
        if name not in options:
            raise
        raise UsageError(f"{show_option(name)}{colon}{text}") from fault


def described(fields: Iterable[Field]) -> Iterator[str]:
    """Yields lines about settings: name and default, then meaning and range."""
    listed = list(fields)
    values = {field.name: field.value for field in listed}
    for field in listed:
        default = shown_default(field, values.get(f"{field.name}_by", "epoch"))
        yield f"  {show_option(field.name)}" + (f"  (default: {default})" if default else "")
        yield textwrap.indent(textwrap.fill(field.meaning, _WIDTH - 6), " " * 6)


def shown_default(field: Field, by: str = "epoch") -> str:
    """Returns a default for a reader, points `by` epoch or level; nothing if none is set."""
    value = field.value
    if value in (None, "", (), math.inf) or words_taken(field.hint) == 0:
        return ""
    if isinstance(value, tuple) and isinstance(value[0], tuple):
        return f"{by} " + ", ".join(f"{at:g}: {to:g}" for at, to in value)
    return show_value(value)


def split(
    arguments: Sequence[str], options: Mapping[str, Field], likely: Iterable[str] = ()
) -> tuple[tuple[str, ...], Typed]:
    """Returns positional words, and the words of each option, of which the last one counts."""
    # `0,1,2` is `0 1 2` where several numbers may follow. `likely` ones are proposed first.
    positional: list[str] = []
    typed: Typed = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not is_option(word):
            positional.append(word)
            continue
        written, equals, value = word.partition("=")
        name = written[2:].replace("-", "_")
        if not written.startswith("--") or name not in options:
            raise _unknown(written, options, likely)
        values = [value] if equals else []
        wanted = words_taken(options[name].hint, (*values, *rest, "")[0])
        several = wanted is None or wanted > 1
        values = [part for word in values for part in (several and _numbers(word)) or [word]]
        while rest and not is_option(rest[0]) and (wanted is None or len(values) < wanted):
            word = rest.pop(0)
            values += (several and _numbers(word)) or [word]
        adds_up = REPEATED in notes_of(options[name].hint)
        if wanted not in (None, len(values)) or (adds_up and not values):
            single = "True or False" if options[name].hint is bool else "a value"
            expected = {0: "takes no value", 1: f"expected {single}", None: "expected values"}
            raise UsageError(
                f"{show_option(name)}: {expected.get(wanted, f'expected {wanted} values')}, "
                f"got {len(values) or 'none'}"
            )
        typed[name] = (*(typed.get(name, ()) if adds_up else ()), *values)
    return tuple(positional), typed


def is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _numbers(word)


def _numbers(word: str) -> list[str]:
    """Returns the numbers of a word such as `3`, `0,1,2` or `[0,`; nothing if it has others."""
    parts = word.strip("[](),").split(",")
    with contextlib.suppress(ValueError):
        list(map(float, parts))
        return parts
    return []


def _unknown(written: str, options: Mapping[str, Field], likely: Iterable[str]) -> UsageError:
    name = written.lstrip("-").replace("-", "_")
    if name.rstrip("0123456789") in _OF_LAUNCH and "learners" in options:
        cure = "that is an option of launch, before train: music-tf launch -n 2 train ..."
        return UsageError(f"unknown option {written[:80]!r}\n{cure}")
    near = [name] if name in options else likely_names(name, likely) or likely_names(name, options)
    cure = "--help lists the valid ones"
    if near:
        cure = f"did you mean {' or '.join(map(show_option, near))}?"
    return UsageError(f"unknown option {written[:80]!r}\n{cure}")


@functools.cache
def _spec(hint: Any) -> PrimitiveConstructorSpec[Any]:
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(hint, set()))
    if not isinstance(spec, PrimitiveConstructorSpec):
        raise TypeError(f"{hint}: this type cannot be typed on a command line")
    return spec


def words_taken(hint: Any, first: str = "") -> int | None:
    """Returns how many words a value takes that begins with `first`; None for any number."""
    if tyro.conf.FlagCreatePairsOff in notes_of(hint):
        return 0
    count = _spec(hint).nargs
    if isinstance(count, tuple):  # several numbers, or one word
        return max(count) if _numbers(first) else 1
    return count if isinstance(count, int) else None


def read_value(field: Field, words: Sequence[str]) -> Any:
    """Converts the words of an option; None, True and False may have any letter case."""
    if words_taken(field.hint) == 0:
        return True
    spec = _spec(field.hint)
    special = ["none"] if is_optional(field.hint) else ["true", "false"] * (field.hint is bool)
    written = [word.capitalize() if word.lower() in special else word for word in words]
    if spec.choices is None or set(written) <= set(spec.choices):
        with contextlib.suppress(ValueError):
            return spec.instance_from_str(written)
    choices = choices_of(field.hint)
    wrong = [word for word in words if word not in choices]
    raise UsageError(
        f"{show_option(field.name)}: expected {describe_type(field.hint)}, "
        f"got {' '.join(words)[:80]!r}"
        + (suggestion(wrong[0], choices) if choices else "")
        + f"\n{textwrap.shorten(field.documentation, 240, placeholder=' ...')}"
        + ("" if field.value is None else f" Now {show_value(field.value)}.")
    )
