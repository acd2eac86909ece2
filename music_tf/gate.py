"""The one gate for stored arrays and values: what passes it is what was written, and fits the run.

Reading checks a file's size and digest, and each array's name, type, shape and numbers, before
memory is taken for it. Nothing that a file holds is executed or expanded.
"""

import contextlib
import dataclasses
import hashlib
import io
import math
import os
import re
import struct
import tokenize
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from music_tf.files import open_regular, parse_json
from music_tf.hints import fits, hints_of, read
from music_tf.types import Declared

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Kind: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]
"""Type and shape of an array."""
Expected: TypeAlias = Mapping[str, Kind]
ExpectedFrom: TypeAlias = Callable[[Expected], Expected]
"""Says what is expected of the arrays that a file has, where some sizes stand in the file alone."""
ENVIRONMENT = "environment"
"""Under which name a checkpoint says what the environment declared."""
FREE = -1
"""A length that is not known beforehand."""
Own = TypeVar("Own")

_LARGEST_DOCUMENT = 2**24
_LARGEST_STATE = 2**30
"""Bytes of arrays that are read where nobody knows how large those of the run may be."""
_MARGIN = 2**20
_LARGEST_CONTENTS = 2**20
"""Bytes of the table of contents of an `.npz` file, which is parsed as a whole."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
_KINDS = "biuf"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_UNREADABLE = (
    *(ValueError, EOFError, TypeError, OverflowError, MemoryError, RuntimeError, SyntaxError),
    *(tokenize.TokenError, struct.error, zipfile.BadZipFile, KeyError, IndexError),
)


class DamagedError(Exception):
    """A stored file is missing or differs from what was written; the text names it."""


class MisfitError(ValueError):
    """A stored array is not one that this run has; the text names it and both shapes."""

    def __init__(self, name: str, expected: str | None, found: str | None) -> None:
        """Says what was expected and what was found; None stands for no such array."""
        text = f"expected {expected}, found {found}"
        if found is None:
            text = "missing"
        if expected is None:
            text = "no such weight in this run"
        super().__init__(f"{name}: {text}")
        self.name, self.expected, self.found = name, expected, found


class ExpectedState(NamedTuple):
    """What a run has room for."""

    shared: Expected | ExpectedFrom
    """State that all ranks share."""
    rows: Expected | ExpectedFrom
    """Replay of a worker when it is full; stored rows may be fewer along the first axis."""
    environment: Declared
    """What the environment declares."""


class Entry(NamedTuple):
    """What a manifest says about one file."""

    path: str
    """Relative to the checkpoint, for replay to the directory of all checkpoints."""
    size: int
    """Bytes."""
    sha256: str


# --- what is expected -------------------------------------------------------------------------


def expected_of(arrays: Mapping[str, npt.NDArray[Any]], free: bool = False) -> dict[str, Kind]:
    """Describes the arrays of freshly built objects; those of a buffer may be of any length."""
    return {
        name: (array.dtype, (FREE, *array.shape[1:]) if free and array.ndim else array.shape)
        for name, array in arrays.items()
    }


def check_fit(found: Expected, expected: Expected, rows: bool = False) -> None:
    """Compares stored arrays with those that a run has, before they are read or taken over.

    Where they are `rows`, the first axis of an array may be shorter than expected.

    Raises:
        MisfitError: One is missing, unknown, or of another type or shape.
    """
    for name, (dtype, shape) in expected.items():
        if name not in found:
            raise MisfitError(name, f"{dtype} {shape}", None)
        found_dtype, found_shape = found[name]
        fits = found_shape == shape
        if rows and shape and found_shape:
            enough = shape[0] == FREE or found_shape[0] <= shape[0]
            fits = found_shape[1:] == shape[1:] and enough
        if not fits or found_dtype != dtype:
            most = " at most" if rows and shape else ""
            raise MisfitError(name, f"{dtype} {shape}{most}", f"{found_dtype} {found_shape}")
    for name in sorted(set(found) - set(expected)):
        raise MisfitError(name, None, "{} {}".format(*found[name]))


def take_over(template: Own, data: Any, name: str) -> Own:
    """Makes a copy of a dataclass with values that JSON holds, checked by the types of its fields.

    Whole numbers are counts, and numbers of the dataclass itself durations or shares: neither is
    negative. Its own `__post_init__` may refuse more.

    Raises:
        ValueError: A value is missing, unknown, or none that a run can have reached.
    """
    hints = hints_of(type(template))
    if not isinstance(data, dict) or set(data) != set(hints):
        raise ValueError(f"{name}: expected {', '.join(hints)}")
    for key, value in data.items():
        negative = isinstance(value, int | float) and value < 0
        if negative or not fits(value, hints[key]):
            raise ValueError(f"{name}.{key}: not what a run saves: {str(value)[:80]}")
    values = {key: read(value, hints[key]) for key, value in data.items()}
    return cast(Own, dataclasses.replace(cast(Any, template), **values))


def success_rate(value: Any) -> float | None:
    """Checks the best success rate that a checkpoint knows; None where it knows none.

    Raises:
        ValueError: It is none.
    """
    if value is None:
        return None
    if not fits(value, float) or not 0.0 <= value <= 1.0:
        raise ValueError(f"best_success_rate: not what a run saves: {str(value)[:80]}")
    return float(value)


def declared_in(meta: Mapping[str, Any]) -> Declared | None:
    """Returns what the environment of a checkpoint declared; None in one of an older version.

    Raises:
        ValueError: It is nothing that an environment declares.
    """
    found = meta.get(ENVIRONMENT)
    return None if found is None else take_over(Declared(), found, ENVIRONMENT)


def is_count(value: Any) -> bool:
    """Tells whether a JSON value is a whole number that something can have been counted to."""
    return fits(value, int) and value >= 0


def check_path(path: str) -> None:
    """Checks that a name is a plain relative path: a file of any other could lie anywhere.

    Raises:
        ValueError: It is not.
    """
    if not _NAME.fullmatch(path):
        raise ValueError(f"expected a name of letters, digits and _ . - /, got {path!r}")


# --- files ------------------------------------------------------------------------------------


def write_file(base: Path, path: str, content: bytes | Mapping[str, npt.NDArray[Any]]) -> Entry:
    """Writes and syncs a new file: bytes as they are, arrays of numbers as an uncompressed `.npz`.

    Raises:
        OSError: The file exists, or cannot be written.
        ValueError: A name is no plain path, or an array holds something else than numbers.
    """
    if not isinstance(content, bytes):
        for name, array in content.items():
            check_path(name)
            if array.dtype.kind not in _KINDS:
                raise ValueError(f"{name}: expected an array of numbers, got {array.dtype}")
    with open(base / path, "x+b") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.savez(file, allow_pickle=False, **cast(Any, content))
        file.flush()
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return Entry(path, size, hashlib.file_digest(file, "sha256").hexdigest())


def read_object(base: Path, entry: Entry) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        DamagedError: The file is not what was saved.
    """
    with _verified(base, entry, _LARGEST_DOCUMENT) as file:
        content = file.read(entry.size)
    try:
        found = parse_json(content)
    except ValueError as error:
        raise DamagedError(f"{entry.path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise DamagedError(f"{entry.path}: expected a JSON object")
    return found


def read_arrays(
    base: Path,
    entry: Entry,
    expected: Expected | ExpectedFrom | None = None,
    wanted: tuple[str, ...] = ("",),
    rows: bool = False,
) -> tuple[Arrays, tuple[str, ...]]:
    """Reads the arrays of a file whose names begin as wanted, and returns all names beside them.

    Raises:
        DamagedError: The file is not what was saved, or far larger than the run has room for.
        ValueError: An array is not finite; or, as `MisfitError`, not one of those expected.
    """
    most = _LARGEST_STATE
    known = {} if expected is None or callable(expected) else expected
    if known and not any(FREE in shape for _, shape in known.values()):
        sizes = (math.prod(shape) * dtype.itemsize for dtype, shape in known.values())
        most = 2 * sum(sizes) + _MARGIN
    arrays: Arrays = {}
    with _verified(base, entry, most) as file:
        try:
            with zipfile.ZipFile(cast(IO[bytes], _InPieces(file))) as archive:
                members = _members(archive, entry.size)
                chosen = {name: m for name, m in members.items() if name.startswith(wanted)}
                headers = {name: _read_header(archive, m) for name, m in chosen.items()}
                own = expected(headers) if callable(expected) else expected
                if own is not None:
                    own = {name: e for name, e in own.items() if name.startswith(wanted)}
                    check_fit(headers, own, rows)
                for name, member in chosen.items():
                    with archive.open(member) as content:
                        arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
        except MisfitError:
            raise
        except _UNREADABLE as error:
            raise DamagedError(f"{entry.path}: not an array file ({error})") from error
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers")
    return arrays, tuple(members)


class _InPieces:
    """A file of which no large piece is read at once, such as a zip's table of contents."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_CONTENTS:
            raise ValueError("its table of contents is too long")
        return self._file.read(size)


@contextlib.contextmanager
def _verified(base: Path, entry: Entry, most: int) -> Iterator[io.BufferedReader]:
    """Opens a file that is the one that was written, and not larger than allowed."""
    if entry.size > most:
        raise DamagedError(f"{entry.path}: {entry.size} bytes, more than the {most} allowed")
    try:
        with open_regular(base / entry.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.size:
                raise DamagedError(f"{entry.path}: expected {entry.size} bytes, found {size}")
            if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
                raise DamagedError(f"{entry.path}: content differs from what was saved (sha256)")
            file.seek(0)
            yield file
    except FileNotFoundError as error:
        raise DamagedError(f"{entry.path}: missing") from error
    except OSError as error:
        raise DamagedError(f"{entry.path}: cannot be read ({error.strerror or error})") from error


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Returns the members of an archive by array, after checking that they lie there as bytes."""
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    for name, member in members.items():
        check_path(name)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{name}: expected an array as it is, not compressed")
    if len(members) != len(archive.infolist()):
        raise ValueError("a name appears twice")
    if sum(member.file_size for member in members.values()) > size:
        raise ValueError("its arrays are larger than the file")
    return members


def _read_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Kind:
    """Returns type and shape of an array after comparing them with the bytes that are there."""
    with archive.open(member) as content:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(content)](content)
        if dtype.kind not in _KINDS:
            raise ValueError(f"expected numbers, got {dtype}")
        if content.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"shape {shape} does not fit the size of the file")
    return dtype, shape
