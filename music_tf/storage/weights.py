"""Copies of weights without replay or counters, and reading weights out of any checkpoint."""

import dataclasses
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from music_tf.errors import UsageError
from music_tf.storage.durable import DamagedError, sync_directory
from music_tf.storage.manifest import MANIFEST, Manifest, read_manifest
from music_tf.storage.state_folder import (
    TEMPORARY,
    Arrays,
    Sizes,
    all_damaged,
    describe,
    finish_folder,
    labels,
    read_labelled,
    read_state,
    write_state,
)

_LOGGER = logging.getLogger(__name__)
_REPLACED = ".replaced"


class StoredWeights(NamedTuple):
    """An intact checkpoint without its replay."""

    folder: Path
    sha256: str
    """Of its manifest, which holds the digests of all else."""
    names: tuple[str, ...]
    """Of all its arrays, read or not."""
    arrays: Arrays
    meta: dict[str, Any]


def save_weights(
    directory: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]
) -> bool:
    """Writes a copy that holds weights only, replacing an older one; for one rank.

    Args:
        directory: The copy's own directory, such as `checkpoints/best`.
        arrays: Weights by name.
        meta: JSON values.

    Returns:
        Whether it worked; if not, a warning was logged and the older copy is still there.

    Raises:
        ValueError: A name or an array cannot be stored.
    """
    temporary = directory.with_name(f"{directory.name}{TEMPORARY}new")
    replaced = directory.with_name(f"{directory.name}{_REPLACED}")
    try:
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir(parents=True)
        stored = write_state(temporary, arrays, meta)
        finish_folder(temporary, Manifest(0, stored[0], tuple(stored[1:]), {}))
        if directory.exists():
            if replaced.exists():
                shutil.rmtree(replaced)
            os.rename(directory, replaced)
        os.rename(temporary, directory)
        sync_directory(directory.parent)
        if replaced.exists():
            shutil.rmtree(replaced)
    except OSError as error:
        _LOGGER.warning("weights not saved: %s", describe(error))
        return False
    return True


def load_weights(directory: Path, sizes: Sizes | None = None) -> tuple[Arrays, dict[str, Any]]:
    """Returns arrays and meta values as `newest_weights` finds them."""
    found = newest_weights(directory, sizes)
    return found.arrays, found.meta


def newest_weights(
    directory: Path, sizes: Sizes | None = None, wanted: tuple[str, ...] = ("",)
) -> StoredWeights:
    """Returns the newest intact checkpoint, without its replay.

    Args:
        directory: All checkpoints of a run, or one checkpoint, or a copy of weights.
        sizes: Larger files count as damaged, before any of them is read.
        wanted: How names of arrays begin; others are not read, damaged or not.

    Raises:
        UsageError: There is no checkpoint.
        EnvironmentFault: There are checkpoints, but none is intact.
    """
    try:
        candidates = list(_candidates(directory))
    except OSError as error:
        raise UsageError(f"{directory}: expected checkpoints: {describe(error)}") from error
    damages: list[str] = []
    for folder in candidates:
        try:
            manifest = read_manifest(folder) if folder == directory else read_labelled(folder)
            digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
            names = tuple(stored.name for stored in manifest.arrays)
            chosen = tuple(stored for stored in manifest.arrays if stored.name.startswith(wanted))
            state = read_state(folder, dataclasses.replace(manifest, arrays=chosen), sizes)
            return StoredWeights(folder, digest, names, *state)
        except (DamagedError, OSError) as damage:
            if not os.path.lexists(folder):  # the run is going, and has removed it meanwhile
                return newest_weights(directory, sizes, wanted)
            damages.append(f"{folder.name}/{damage}")
            _LOGGER.warning("checkpoint skipped, it is damaged: %s", damages[-1])
    if damages:
        raise all_damaged(directory, damages)
    raise UsageError(f"{directory}: expected checkpoints, found none; has the run saved yet?")


def _candidates(directory: Path) -> Iterator[Path]:
    """Yields folders that may hold weights, best first."""
    replaced = directory.with_name(f"{directory.name}{_REPLACED}")
    if (directory / MANIFEST).exists():
        yield directory
    elif not directory.exists() and replaced.exists():
        yield from _candidates(replaced)
    else:
        for label in reversed(labels(path.name for path in directory.iterdir())):
            yield directory / label
