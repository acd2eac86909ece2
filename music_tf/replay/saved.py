"""Checks that replay rows of a checkpoint can be stored: they must fill the shard's own slots."""

from collections.abc import Mapping, Sequence

import numpy as np

from music_tf.replay.buffer import Shard


def full_rows(shard: Shard) -> dict[str, np.ndarray]:
    """Returns what a save of the whole shard holds when it is full, for names, types and shapes."""
    slots = np.broadcast_to(np.int64(0), shard.capacity)
    return {**shard.arrays, "slots": slots, "size": np.array(0), "cursor": np.array(0)}


def check_rows(saved: Sequence[Mapping[str, np.ndarray]], shard: Shard) -> None:
    """Checks rows in order of saving, before any of them enters the shard.

    Args:
        saved: Arrays of the names, types and shapes that `full_rows` has, or fewer rows.
        shard: Where they belong.

    Raises:
        ValueError: They lie outside the shard, or leave some of it unset.
    """
    filled: set[int] = set()
    size = 0
    for rows in saved:
        slots, size, cursor = rows["slots"], int(rows["size"]), int(rows["cursor"])
        inside = 0 <= size <= shard.capacity and 0 <= cursor < shard.capacity
        if not inside or not _within(slots, 0, size - 1):
            raise ValueError("replay: slots, size or cursor lie outside its capacity")
        if any(len(rows[name]) != len(slots) for name in shard.arrays):
            raise ValueError("replay: not as many rows as slots")
        if not _within(rows["length"], 1, shard.arrays["action"].shape[1]):
            raise ValueError("replay: length lies outside an episode")
        filled.update(slots.tolist())
    if len(filled) != size:
        raise ValueError(f"replay: {len(filled)} of {size} episodes are there")


def _within(values: np.ndarray, low: int, high: int) -> bool:
    return bool(((low <= values) & (values <= high)).all())
