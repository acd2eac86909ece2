"""Settings as fields of dataclasses: their ranges, their documentation, and their dotted names."""

import ast
import contextlib
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

from music_tf import hints
from music_tf.errors import UsageError

Tree = TypeVar("Tree", bound="Settings")

_ANY = 1e9  # a bound that no user meets, and that is not shown


@dataclasses.dataclass(frozen=True)
class In:
    """Range of a setting's number, or of each of its numbers."""

    low: float
    high: float
    ends: str = "[]"
    """A bracket includes an end, a parenthesis excludes it."""

    def fits(self, value: Any) -> bool:
        """Whether a value is inside; None and words always are."""
        if isinstance(value, tuple):
            return all(map(self.fits, value))
        if value is None or isinstance(value, str):
            return True
        above = value > self.low or (value == self.low and self.ends[0] == "[")
        return bool(above and (value < self.high or (value == self.high and self.ends[1] == "]")))

    def __str__(self) -> str:
        if self.high >= _ANY:
            least = f" {'of at least' if self.ends[0] == '[' else 'above'} {self.low:.10g}"
            return least if self.low > -_ANY else ""
        return f" in {self.ends[0]}{self.low:.10g}, {self.high:.10g}{self.ends[1]}"


@dataclasses.dataclass(frozen=True)
class Where:
    """Any other condition on a value, in words and as code."""

    words: str
    fits: Callable[[Any], bool]

    def __str__(self) -> str:
        return f", {self.words}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """A group of settings; the ranges in their type hints are checked on construction."""

    name: ClassVar[str] = ""
    """Prefix of the names of its settings, without the dot."""
    metrics: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Metrics that only runs with these settings write, with their meaning."""

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        """Returns all metrics that such settings may bring to a run, with their meaning."""
        return cls.metrics

    def __post_init__(self) -> None:
        for name, hint in hints.hints_of(type(self)).items():
            value = getattr(self, name)
            if not all(rule.fits(value) for rule in _rules(hint)):
                expected = describe_type(hint)
                raise UsageError(f"{self.shown(name)}: expected {expected}, got {value!r}")

    def check(self, run: Any) -> None:
        """Refuses a run in which these settings cannot work, by a UsageError; by default none."""

    def check_training(self, run: Any) -> None:
        """As `check`, for training alone: runs that were trained so can still be read and shown."""

    @classmethod
    def shown(cls, name: str) -> str:
        """Returns the dotted name of one of the settings."""
        return f"{cls.name}.{name}" if cls.name else name


class Field(NamedTuple):
    """One setting."""

    name: str  # dotted, as in `agent.polyak`
    hint: Any
    value: Any
    documentation: str

    @property
    def short(self) -> str:
        """The first sentence of its documentation, which fits a line of `train --help`."""
        return self.documentation.partition(". ")[0].removesuffix(".")

    @property
    def meaning(self) -> str:
        """Its documentation, and type and range or choices as a sentence, if it has any."""
        text = describe_type(self.hint)
        text = text.removesuffix(" or None") if self.value is None else text
        limited = _rules(self.hint) or hints.choices_of(self.hint)
        sentence = f"{text[0].upper()}{text[1:]}." if limited else ""
        return f"{self.documentation} {sentence}".strip()


def fields_of(tree: Settings) -> Iterator[Field]:
    """Yields the settings of a configuration, as they are defined; names of groups before these."""
    prefix = f"{tree.name}." if tree.name else ""
    texts = documentation(type(tree))
    for name, hint in hints.hints_of(type(tree)).items():
        value = getattr(tree, name)
        if isinstance(value, Settings):
            yield from fields_of(value)
        elif isinstance(value, Mapping):
            yield Field(name, tuple[str, ...], tuple(value), texts[name])
            for group in value.values():
                yield from fields_of(group)
        else:
            yield Field(f"{prefix}{name}", hint, value, texts.get(name, ""))


def groups_of(tree: Settings) -> Iterator[Settings]:
    """Yields the groups that a configuration holds, those in mappings too."""
    for name in hints.hints_of(type(tree)):
        value = getattr(tree, name)
        if isinstance(value, Mapping):
            yield from value.values()
        elif isinstance(value, Settings):
            yield value


def with_fields(tree: Tree, values: Mapping[str, Any]) -> Tree:
    """Returns a copy with the settings of these dotted names replaced."""
    direct = {name: value for name, value in values.items() if "." not in name}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        group, dot, rest = name.partition(".")
        if dot:
            inner.setdefault(group, {})[rest] = value
    for group, settings in inner.items():
        if group in hints.hints_of(type(tree)):
            direct[group] = with_fields(getattr(tree, group), settings)
            continue
        for name in hints.hints_of(type(tree)):
            members = direct.get(name, getattr(tree, name))
            if isinstance(members, Mapping) and group in members:
                direct[name] = {**members, group: with_fields(members[group], settings)}
                break
        else:
            raise UsageError(f"{group}.{next(iter(settings))}: these settings have no {group}")
    return dataclasses.replace(tree, **direct)


def describe_type(hint: Any) -> str:
    first, *others = map(hints.describe_kind, hints.kinds_of(hint))
    ranges = "".join(map(str, _rules(hint)))
    return " or ".join([f"{first}{ranges}", *others, *["None"] * hints.is_optional(hint)])


def show_option(name: str) -> str:
    return "--" + name.replace("_", "-")


def show_value(value: object) -> str:
    """Returns a value as it would be typed."""
    if isinstance(value, tuple | list):
        return " ".join(show_value(item) for item in value) or "(empty)"
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)


@hints.cached
def documentation(kind: type[Any]) -> Mapping[str, str]:
    """Returns the texts that stand under the fields of a class and its parents."""
    texts: dict[str, str] = {}
    for parent in reversed(inspect.getmro(kind)[:-1]):
        body: list[ast.stmt] = []
        with contextlib.suppress(OSError, TypeError):  # a class made at run time has no source
            body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0].body  # type: ignore[attr-defined]
        for field, text in itertools.pairwise(body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    texts[name] = " ".join(words.split())
    return texts


def _rules(hint: Any) -> tuple[Any, ...]:
    return tuple(note for note in hints.notes_of(hint) if isinstance(note, In | Where))
