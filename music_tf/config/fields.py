"""The fields of a configuration tree by dotted name, with their types and documentation."""

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Tree = TypeVar("Tree")

_NAMES = {int: "whole number", float: "number", str: "text"}


class Field(NamedTuple):
    """One setting."""

    name: str  # dotted, as in `agent.polyak`
    hint: Any
    value: Any
    documentation: str


def fields_of(tree: Any, prefix: str = "") -> Iterator[Field]:
    """Yields the settings of a configuration in the order of their definition."""
    owner: Any = type(tree)
    hints = get_type_hints(owner)
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if dataclasses.is_dataclass(value):
            yield from fields_of(value, f"{prefix}{field.name}.")
        else:
            documentation = _documentation(owner).get(field.name, "")
            yield Field(f"{prefix}{field.name}", hints[field.name], value, documentation)


def with_fields(tree: Tree, values: Mapping[str, object]) -> Tree:
    """Returns a copy with the settings of these dotted names replaced."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        head, _, rest = name.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            own[head] = value
    for head, inner in nested.items():
        own[head] = with_fields(getattr(tree, head), inner)
    return dataclasses.replace(tree, **own)  # type: ignore[type-var]


def is_optional(hint: Any) -> bool:
    """Whether the setting may be unset."""
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def without_none(hint: Any) -> Any:
    """Returns the type of an optional setting once it is set."""
    if not is_optional(hint):
        return hint
    (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
    return inner


def value_count(hint: Any) -> int | None:
    """Returns how many words a value takes on the command line; None for any number."""
    inner = without_none(hint)
    if get_origin(inner) is not tuple:
        return 1
    return None if Ellipsis in get_args(inner) else len(get_args(inner))


def choices_of(hint: Any) -> tuple[str, ...]:
    """Returns the words that a setting chooses from, or none where it is open."""
    inner = without_none(hint)
    if get_origin(inner) is tuple:
        inner = get_args(inner)[0]
    return tuple(get_args(inner)) if get_origin(inner) is Literal else ()


def describe_type(hint: Any) -> str:
    """Returns what a value must look like, in words."""
    inner = without_none(hint)
    end = " or None" if is_optional(hint) else ""
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}{end}"
    if inner is bool:
        return f"True or False{end}"
    if get_origin(inner) is tuple:
        return _describe_tuple(get_args(inner)) + end
    return ("text" if inner is str else f"a {_NAMES[inner]}") + end


def show_value(value: object) -> str:
    """Returns a value as it would be typed."""
    if isinstance(value, tuple):
        return " ".join(show_value(item) for item in value) or "(empty)"
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)


def _describe_tuple(members: tuple[Any, ...]) -> str:
    first = members[0]
    if Ellipsis not in members:
        return f"{len(members)} {_NAMES[first]}s"
    if get_origin(first) is tuple:
        return "pairs of numbers, 'epoch value' for each"
    if get_origin(first) is Literal:
        return f"any of {', '.join(get_args(first))}"
    return f"{_NAMES[first]}s"


@functools.cache
def _documentation(kind: type) -> Mapping[str, str]:
    """Returns the texts that stand under the fields of a class and its parents."""
    found: dict[str, str] = {}
    for parent in reversed(inspect.getmro(kind)[:-1]):
        (definition,) = ast.parse(inspect.getsource(parent)).body
        if not isinstance(definition, ast.ClassDef):
            continue
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found
