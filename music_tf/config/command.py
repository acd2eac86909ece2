"""How tyro reads and explains a configuration: what its types and texts say is all there is."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tyro.constructors import (
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from music_tf.config.fields import (
    Field,
    Settings,
    describe_type,
    documentation,
    fields_of,
    hints_of,
)
from music_tf.config.settings import Config, TermConfig
from music_tf.errors import UsageError

Terms = Mapping[str, type[TermConfig]]


def options_of(config: Config, terms: Terms) -> dict[str, Field]:
    """Returns every option of `train` by its name, those of terms that are not paid as well."""
    fields = {field.name: field for field in fields_of(config)}
    for name, kind in terms.items():
        if name not in config.rewards:
            fields |= {field.name: field for field in fields_of(kind(), f"{name}.")}
    fields["rewards"] = fields["rewards"]._replace(hint=_names(terms))
    return fields


def rules(terms: Terms) -> ConstructorRegistry:
    """Returns what tyro has to know of settings: `--rewards` picks among terms, each has options.

    A term that the configuration does not pay starts from its own defaults.
    """
    registry = ConstructorRegistry()

    @registry.struct_rule
    def settings(info: StructTypeInfo) -> StructConstructorSpec | None:
        if not isinstance(info.default, Settings):
            return None
        default = info.default
        texts = documentation(type(default))
        fields = []
        for name, hint in hints_of(type(default)).items():
            text, value = texts.get(name, ""), getattr(default, name)
            if isinstance(value, Mapping):
                fields.append(StructFieldSpec(name, _names(terms), tuple(value), text))
                fields += [
                    StructFieldSpec(term, kind, value.get(term, kind()))
                    for term, kind in terms.items()
                ]
            else:
                fields.append(StructFieldSpec(name, hint, value, f"{text} {describe_type(hint)}."))
        make: Any = composed if isinstance(default, Config) else dataclasses.replace
        return StructConstructorSpec(functools.partial(make, default), tuple(fields))

    def composed(default: Config, /, *, rewards: Sequence[str], **values: Any) -> Config:
        found = {term: values.pop(term) for term in terms}
        if not rewards or len(set(rewards)) < len(rewards):
            raise UsageError(
                f"--rewards: expected at least one of {', '.join(terms)}, each once, "
                f"got {' '.join(rewards)[:80]!r}"
            )
        return dataclasses.replace(
            default, rewards={term: found[term] for term in rewards}, **values
        )

    return registry


def _names(terms: Terms) -> Any:
    """Returns the type of `--rewards`."""
    return tuple[Literal[tuple(terms)], ...]  # type: ignore[misc]
