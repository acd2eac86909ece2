"""Files that are either complete or absent: digested while written, synced, verified when read."""

import contextlib
import dataclasses
import hashlib
import io
import math
import os
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from music_tf.storage.files import open_regular

_DRAFT = ".tmp-"
_KINDS = "biuf"
_UNREADABLE = (
    ValueError,
    EOFError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    SyntaxError,
    tokenize.TokenError,
)


HEADER = 4096
"""Bytes that an array's file may have beside its numbers."""


class DamagedError(Exception):
    """A stored file is missing or differs from what was written; the text names it."""


@dataclasses.dataclass(frozen=True)
class StoredFile:
    """What a manifest says about one file."""

    name: str
    """Name of the value inside, which may contain slashes."""
    path: str
    """Place of the file, relative to a directory that the manifest's reader knows."""
    size: int
    """Bytes."""
    sha256: str


class _DigestingWriter:
    """The write method that numpy needs; takes the digest on the way to the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def write_bytes(name: str, base: Path, path: str, data: bytes) -> StoredFile:
    """Writes and syncs a new file `base / path`.

    Raises:
        OSError: The file exists, or cannot be written.
    """
    with open(base / path, "xb") as file:
        writer = _DigestingWriter(file)
        writer.write(data)
        _sync(file)
    return StoredFile(name, path, writer.size, writer.sha256)


def write_array(name: str, base: Path, path: str, array: npt.NDArray[Any]) -> StoredFile:
    """Writes and syncs a new `.npy` file `base / path`.

    Raises:
        OSError: The file exists, or cannot be written.
        ValueError: The array holds something else than numbers.
    """
    if array.dtype.kind not in _KINDS:
        raise ValueError(f"{name}: expected an array of numbers, got {array.dtype}")
    with open(base / path, "xb") as file:
        writer = _DigestingWriter(file)
        np.lib.format.write_array(cast(Any, writer), array, allow_pickle=False)
        _sync(file)
    return StoredFile(name, path, writer.size, writer.sha256)


def sync_directory(path: Path) -> None:
    """Makes names created in or renamed into a directory survive a crash of the machine.

    Raises:
        OSError: The directory cannot be synced.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file new content; a crash leaves the old or the new content, nothing between.

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    temporary = path.with_name(f"{path.name}{_DRAFT}{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            _sync(file)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def remove_drafts(directory: Path, names: Iterable[str]) -> None:
    """Removes what a process that was killed within `replace_file` left of files behind.

    Raises:
        OSError: It cannot be removed.
    """
    for name in names:
        for draft in directory.glob(f"{name}{_DRAFT}*"):
            draft.unlink(missing_ok=True)


def read_bytes(base: Path, stored: StoredFile, limit: int) -> bytes:
    """Returns the verified content of a file of at most `limit` bytes.

    Raises:
        DamagedError: The file is missing, too large, or not the one that was written.
    """
    if stored.size > limit:
        raise DamagedError(f"{stored.path}: {stored.size} bytes, more than the {limit} allowed")
    with _open_verified(base, stored) as file:
        return file.read(stored.size)


def read_array(base: Path, stored: StoredFile) -> npt.NDArray[Any]:
    """Returns the verified array of a `.npy` file; memory is only taken for bytes that exist.

    Raises:
        DamagedError: The file is missing, no plain array, or not the one that was written.
    """
    with _open_verified(base, stored) as file:
        try:
            _check_header(file, stored)
            file.seek(0)
            return cast(npt.NDArray[Any], np.load(file, allow_pickle=False))
        except _UNREADABLE as error:
            raise DamagedError(f"{stored.path}: not an array file ({error})") from error


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _open_verified(base: Path, stored: StoredFile) -> Iterator[io.BufferedReader]:
    try:
        with open_regular(base / stored.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size != stored.size:
                raise DamagedError(f"{stored.path}: expected {stored.size} bytes, found {size}")
            if hashlib.file_digest(file, "sha256").hexdigest() != stored.sha256:
                raise DamagedError(f"{stored.path}: content differs from what was saved (sha256)")
            file.seek(0)
            yield file
    except FileNotFoundError as error:
        raise DamagedError(f"{stored.path}: missing") from error
    except OSError as error:
        raise DamagedError(f"{stored.path}: cannot be read ({error.strerror})") from error


def _check_header(file: io.BufferedReader, stored: StoredFile) -> None:
    """Compares the size that an array's header claims with the bytes that are there."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"unknown format version {version}")
    if dtype.kind not in _KINDS:
        raise ValueError(f"expected numbers, got {dtype}")
    if file.tell() + math.prod(shape) * dtype.itemsize != stored.size:
        raise ValueError(f"shape {shape} does not fit the size of the file")
