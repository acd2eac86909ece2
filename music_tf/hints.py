"""Interprets type hints: describes the values that a hint allows, and converts values to it.

Settings, command lines, `config.json`, counters of a checkpoint and study files use this module.
"""

import contextlib
import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Function = TypeVar("Function", bound=Callable[..., Any])

_NAMES = {int: "whole number", float: "number", str: "text"}
_LARGEST = 2**62
"""Bound of whole numbers; a number that does not fit 64 bits would fail much later."""
_NO_TEXTS: Mapping[str, float] = types.MappingProxyType({})


def cached(function: Function) -> Function:
    """Applies `functools.cache` to a function of a class, which mypy takes for unhashable."""
    return cast(Function, functools.cache(function))


# --- the values that a hint allows ------------------------------------------------------------


@cached
def hints_of(owner: Any) -> Mapping[str, Any]:
    """Hints of a function or, of a dataclass, of the fields that are settings (`compare`)."""
    hints = get_type_hints(owner, include_extras=True)
    if not dataclasses.is_dataclass(owner):
        return hints
    return {field.name: hints[field.name] for field in dataclasses.fields(owner) if field.compare}


def notes_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def is_optional(hint: Any) -> bool:
    return _is_union(_bare(hint)) and type(None) in get_args(_bare(hint))


def is_mapping(hint: Any) -> bool:
    return get_origin(_bare(hint)) in (dict, Mapping)


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """Returns the bare types that a hint allows, without None; a `Literal` comes last."""
    inner = _bare(hint)
    if not _is_union(inner):
        return (inner,)
    kinds = [_bare(kind) for kind in get_args(inner) if kind is not type(None)]
    return tuple(sorted(kinds, key=_is_choice))


def choices_of(hint: Any) -> tuple[str, ...]:
    """Returns the words of a `Literal`, or nothing for other hints."""
    last = kinds_of(hint)[-1]
    if get_origin(last) is tuple:
        last = get_args(last)[0]
    return get_args(last) if _is_choice(last) else ()


def describe_kind(kind: Any) -> str:
    choices = ", ".join(choices_of(kind))
    if get_origin(kind) is not tuple:
        if choices or kind is str:
            return f"one of {choices}" if "," in choices else choices or "text"
        return "True or False" if kind is bool else f"a {_NAMES.get(kind, kind.__name__)}"
    first, *others = get_args(kind)
    if choices:
        return f"any of {choices}"
    if get_origin(first) is tuple:
        return "pairs of numbers, 'epoch value' for each"
    if Ellipsis in others:
        return f"{_NAMES[first]}s" if first in (int, float) else "words"
    return f"{1 + len(others)} {_NAMES[first]}s"


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_choice(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


# --- values under a hint ----------------------------------------------------------------------


def read(value: Any, hint: Any, texts: Mapping[str, float] = _NO_TEXTS) -> Any:
    """Converts a value from JSON or Python to the type of a hint; `texts` are words for numbers."""
    if value is None and is_optional(hint):
        return None
    for kind in kinds_of(hint):
        with contextlib.suppress(ValueError):
            return _read(value, kind, texts)
    raise ValueError(f"expected {hint}, got {value!r:.80}")


def fits(value: Any, hint: Any) -> bool:
    try:
        read(value, hint)
    except ValueError:
        return False
    return True


def _read(value: Any, kind: Any, texts: Mapping[str, float]) -> Any:
    if kind is float and isinstance(value, str) and value in texts:
        return texts[value]
    if not _is_of_kind(value, kind):
        raise ValueError("of another kind")
    holder, inner = get_origin(kind), get_args(kind)
    if is_mapping(kind):
        key, of = inner
        return {read(name, key, texts): read(item, of, texts) for name, item in value.items()}
    if holder in (list, tuple, Sequence):
        alike = holder is not tuple or Ellipsis in inner
        kinds = inner[:1] * len(value) if alike else inner
        items = [read(item, of, texts) for item, of in zip(value, kinds, strict=True)]
        return items if holder is list else tuple(items)
    return float(value) if kind is float else value


def _is_of_kind(value: Any, kind: Any) -> bool:
    if _is_choice(kind):
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is not None:
        holder = Mapping if is_mapping(kind) else Sequence
        return isinstance(value, holder) and not isinstance(value, str)
    if kind not in (int, float):
        return isinstance(value, kind)
    if isinstance(value, bool) or not isinstance(value, int | kind):
        return False
    return bool(abs(value) <= sys.float_info.max if kind is float else abs(value) < _LARGEST)
