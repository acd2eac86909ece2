"""What type hints say, and which values they let in; ranges are settings' own business."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import pytest

from music_tf import hints
from tests.kit.cases import cases


def test_a_hint_tells_its_kinds_words_and_notes_and_those_of_parameters_too():
    hint = Annotated[Literal["auto"] | float | None, "a note"]
    assert hints.notes_of(hint) == ("a note",)
    assert hints.is_optional(hint)
    assert hints.kinds_of(hint) == (float, Literal["auto"])  # words come last
    assert (hints.choices_of(hint), hints.choices_of(tuple[Literal["a", "b"], ...])) == (
        ("auto",),
        ("a", "b"),
    )
    assert not hints.is_optional(float)
    assert hints.choices_of(str) == ()
    assert hints.is_mapping(Mapping[str, int])
    assert not hints.is_mapping(Sequence[int])

    def recipe(preset: Literal["small"], env_id: str) -> None: ...

    assert hints.choices_of(hints.hints_of(recipe)["preset"]) == ("small",)


@cases(
    ("value", "hint", "expected"),
    (3, float, 3.0),
    (None, int | None, None),
    ([1, 2], tuple[int, float], (1, 2.0)),
    ([[1, 2], [3, 4]], tuple[tuple[float, float], ...], ((1.0, 2.0), (3.0, 4.0))),
    ([[1, 2]], list[tuple[int, int]], [(1, 2)]),
    (range(3), Sequence[int], (0, 1, 2)),
    ({"a": 1}, dict[str, float], {"a": 1.0}),
    ("auto", float | Literal["auto"], "auto"),
    (["inf", 1], tuple[float, float], (math.inf, 1.0)),
    ids=repr,
)
def test_a_value_is_read_as_its_hint_has_it(value, hint, expected):
    found = hints.read(value, hint, {"inf": math.inf})
    assert found == expected
    assert repr(found) == repr(expected)  # 3 == 3.0


@cases(
    ("value", "hint"),
    *((value, int) for value in (True, 1.0, 2**62, None)),
    *((value, float) for value in (True, 10**400, math.nan, math.inf, "inf")),
    (1, bool),
    ("ab", Sequence[str]),
    ("ab", tuple[str, str]),
    ([1], tuple[int, int]),
    ([1, 2.5], tuple[int, ...]),
    ([], dict[str, float]),
    ({"a": "1"}, Mapping[str, float]),
    ({1: 1.0}, Mapping[str, float]),
    ("b", Literal["a"]),
    (["a"], Literal["a"]),
    ([1], float | Literal["auto"]),
    ids=repr,
)
def test_a_value_of_another_kind_is_refused(value, hint):
    assert not hints.fits(value, hint)
    with pytest.raises(ValueError, match="expected"):
        hints.read(value, hint)
