"""What a checkpoint's directory holds, how it is named, and how it comes and goes."""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.errors import EnvironmentFault
from music_tf.storage.durable import (
    HEADER,
    DamagedError,
    StoredFile,
    read_array,
    read_bytes,
    sync_directory,
    write_array,
    write_bytes,
)
from music_tf.storage.manifest import MANIFEST, META, Manifest, check_name, encode, read_manifest

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

TEMPORARY = ".tmp-"
"""Marks names of what is being written or removed, and may be deleted by the next run."""
_LABEL = re.compile(r"epoch_(\d{6,10})(?:_(\d{1,4}))?")
_LARGEST_META = 2**24
_LARGEST_STATE = 2**30
"""Bytes of arrays that are read where nobody knows how large those of the run may be."""
_SHOWN = 5


class Sizes(NamedTuple):
    """The most bytes that a run's files can hold: larger ones are not read."""

    meta: int
    arrays: Mapping[str, int]
    """State that all ranks share, by name."""
    rows: Mapping[str, int]
    """One file of replay, by name."""


def write_state(
    folder: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]
) -> list[StoredFile]:
    """Writes meta values and arrays, and returns their entries in this order."""
    names = [file_name(name) for name in arrays]
    if len(set(names)) != len(names):
        raise ValueError("two arrays have names that differ only in '.' and '/'")
    text = json.dumps(dict(meta), indent=1, default=_plain)
    stored = [write_bytes("meta", folder, META, text.encode())]
    for name, array in arrays.items():
        stored.append(write_array(name, folder, file_name(name), array))
    return stored


def finish_folder(folder: Path, manifest: Manifest) -> int:
    """Adds the manifest, the last file of a checkpoint, syncs the directory, returns its size."""
    stored = write_bytes("manifest", folder, MANIFEST, encode(manifest))
    sync_directory(folder)
    return stored.size


def read_labelled(folder: Path) -> Manifest:
    """Reads a manifest and checks that it belongs to its folder."""
    manifest = read_manifest(folder)
    found = _LABEL.fullmatch(folder.name)
    if found and int(found[1]) != manifest.epoch:
        raise DamagedError(f"{MANIFEST}: belongs to epoch {manifest.epoch}")
    return manifest


def read_state(
    folder: Path, manifest: Manifest, sizes: Sizes | None = None
) -> tuple[Arrays, dict[str, Any]]:
    """Returns the verified arrays and meta values of a checkpoint.

    Raises:
        DamagedError: A file is missing, larger than allowed, or not what was saved.
    """
    total = sum(stored.size for stored in manifest.arrays)
    if sizes is None and total > _LARGEST_STATE:
        raise DamagedError(f"{MANIFEST}: {total} bytes of arrays, {_LARGEST_STATE} are allowed")
    raw = read_bytes(folder, manifest.meta, sizes.meta if sizes else _LARGEST_META)
    try:
        meta = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{manifest.meta.path}: not JSON ({error})") from error
    if not isinstance(meta, dict):
        raise DamagedError(f"{manifest.meta.path}: expected a JSON object")
    return read_arrays(folder, manifest.arrays, sizes.arrays if sizes else None), meta


def read_arrays(
    base: Path, files: Iterable[StoredFile], largest: Mapping[str, int] | None = None
) -> Arrays:
    """Returns verified arrays by name, each of at most `largest` bytes.

    Raises:
        DamagedError: A file is missing, larger than allowed, or not what was saved.
    """
    arrays: Arrays = {}
    for stored in files:
        if largest is not None and stored.size > largest.get(stored.name, 0) + HEADER:
            raise DamagedError(
                f"{stored.path}: {stored.size} bytes, more than {stored.name} has in this run"
            )
        arrays[stored.name] = read_array(base, stored)
    return arrays


def labels(names: Iterable[str]) -> list[str]:
    """Returns the names that are checkpoints', oldest first."""
    found = [match for name in names if (match := _LABEL.fullmatch(name))]
    return [match[0] for match in sorted(found, key=lambda m: (int(m[1]), int(m[2] or 0)))]


def newest_epoch(names: Iterable[str]) -> int:
    """Returns the epoch of the newest checkpoint among names, 0 where there is none."""
    return max((int(m[1]) for name in names if (m := _LABEL.fullmatch(name))), default=0)


def file_name(name: str) -> str:
    """Returns the flat file name of an array, whose own name may contain slashes."""
    return f"{check_name(name).replace('/', '.')}.npy"


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"meta: expected JSON values, got {type(value).__name__}")


def discard(folder: Path) -> None:
    """Removes a checkpoint so that a crash cannot leave half of it under its name."""
    gone = folder.with_name(f"{folder.name}{TEMPORARY}old")
    os.rename(folder, gone)
    shutil.rmtree(gone)


def remove_temporary(directory: Path) -> None:
    """Removes what an interrupted save left behind."""
    for path in directory.glob(f"*{TEMPORARY}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def describe(error: OSError) -> str:
    """Returns what the system said and about which file."""
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)


def all_damaged(directory: Path, damages: Sequence[str]) -> EnvironmentFault:
    """Returns the fault for checkpoints of which none can be read."""
    shown = "\n".join(damages[:_SHOWN])
    return EnvironmentFault(
        f"{directory}: every one of {len(damages)} checkpoints is damaged:\n{shown}\n"
        "nothing was changed: put back a copy of the files, or train anew in another --run-dir"
    )
