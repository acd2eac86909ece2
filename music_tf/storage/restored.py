"""Checks what a checkpoint holds against the run that takes it over: digests prove no goodwill."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from music_tf.replay.buffer import Shard
from music_tf.storage.state_folder import Sizes
from music_tf.types import all_finite

Own = TypeVar("Own")

_LARGEST_COUNT = 2**62
_META, _META_PER_CYCLE = 2**20, 2**13
_NUMBER = 8
_PLACES = ("slots", "size", "cursor")


def sizes_of(arrays: Mapping[str, np.ndarray], shard: Shard, cycles: int) -> Sizes:
    """Returns the most bytes that files of a run can have.

    Args:
        arrays: State that all ranks share.
        shard: Of any worker.
        cycles: Of an epoch, whose metrics a checkpoint may hold.
    """
    rows = {name: array.nbytes for name, array in shard.arrays.items()}
    return Sizes(
        _META + _META_PER_CYCLE * cycles,
        {name: array.nbytes for name, array in arrays.items()},
        rows | dict.fromkeys(_PLACES, _NUMBER * shard.capacity),
    )


def take_over(template: Own, data: Any, name: str) -> Own:
    """Returns a copy of a dataclass with the values that JSON holds.

    Raises:
        ValueError: A value is missing, unknown, or none that a run can have reached.
    """
    before = vars(template)
    if not isinstance(data, dict) or set(data) != set(before):
        raise ValueError(f"{name}: expected {', '.join(before)}")
    for key, value in data.items():
        fits = _CHECKS.get(key) or _CHECKS[type(before[key])]
        if not fits(value):
            raise ValueError(f"{name}.{key}: not what a run saves: {str(value)[:80]}")
    return dataclasses.replace(template, **data)  # type: ignore[type-var]


def success_rate(value: Any) -> float | None:
    """Returns the best success rate that a checkpoint knows, or None if it knows none.

    Raises:
        ValueError: It is none.
    """
    if value is not None and not (_is_number(value) and 0.0 <= value <= 1.0):
        raise ValueError(f"best_success_rate: not what a run saves: {str(value)[:80]}")
    return value if value is None else float(value)


def check_rows(saved: Sequence[Mapping[str, np.ndarray]], shard: Shard) -> None:
    """Checks replay rows in order of saving, before any of them enters the shard.

    Raises:
        ValueError: They do not fit the shard, or leave some of it unset.
    """
    filled: set[int] = set()
    size = 0
    for rows in saved:
        for name in (*shard.arrays, *_PLACES):
            if name not in rows:
                raise ValueError(f"replay: {name} is missing")
        slots, (size, cursor) = rows["slots"], (_whole(rows[name]) for name in _PLACES[1:])
        fits = slots.ndim == 1 and slots.dtype == np.int64 and 0 <= size <= shard.capacity
        if not fits or not 0 <= cursor < shard.capacity or not _within(slots, 0, size - 1):
            raise ValueError("replay: slots, size or cursor lie outside its capacity")
        for name, array in shard.arrays.items():
            _check_column(name, rows[name], array, len(slots))
        if not _within(rows["length"], 1, shard.arrays["action"].shape[1]):
            raise ValueError("replay: length lies outside an episode")
        filled.update(slots.tolist())
    if len(filled) != size:
        raise ValueError(f"replay: {len(filled)} of {size} episodes are there")


def _check_column(name: str, found: np.ndarray, own: np.ndarray, count: int) -> None:
    expected = (count, *own.shape[1:])
    if found.dtype != own.dtype or found.shape != expected:
        raise ValueError(
            f"replay: {name}: expected {own.dtype} {expected}, found {found.dtype} {found.shape}"
        )
    if not all_finite(found):
        raise ValueError(f"replay: {name}: expected finite numbers")


def _whole(value: np.ndarray) -> int:
    """Returns a count that was saved as an array without axes, or -1 for anything else."""
    return int(value) if value.shape == () and value.dtype == np.int64 else -1


def _within(values: np.ndarray, low: int, high: int) -> bool:
    return bool(((low <= values) & (values <= high)).all())


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_COUNT


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_duration(value: Any) -> bool:
    return _is_number(value) and value >= 0.0


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0.0 < value <= 1.0


def _are_metrics(rows: Any) -> bool:
    """Whether the rows are metrics by name, the same in each row that is not empty."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    names = {tuple(row) for row in rows if row}
    return len(names) <= 1 and all(_is_number(value) for row in rows for value in row.values())


def _are_pairs(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(one) is int for one in pair)  # noqa: PLR2004
        for pair in values
    )


_CHECKS: dict[Any, Callable[[Any], bool]] = {
    int: _is_count,
    float: _is_duration,
    "step_scale": _is_share,
    "totals": _are_metrics,
    "cells": _are_pairs,
}
