"""Writes and reads all stored arrays and values, and checks that they are intact and fit the run.

Reading checks size and checksum of a file, and name, type and shape of each array, before memory is
allocated for it. Contents of a file are never executed or decompressed.
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
from music_tf.types import Declared, instead_of_numbers

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Kind: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]
Expected: TypeAlias = Mapping[str, Kind]
ExpectedFrom: TypeAlias = Callable[[Expected], Expected]
"""Maps the arrays of a file to the expected ones, if some sizes are known from the file alone."""
ENVIRONMENT = "environment"
"""Key of the environment's `Declared` in a checkpoint."""
FREE = -1
"""Length of an axis that is not known beforehand."""
Own = TypeVar("Own")

_LARGEST_DOCUMENT = 2**24
_LARGEST_STATE = 2**30
"""Maximum size in bytes of arrays whose sizes are unknown."""
_MARGIN = 2**20
_LARGEST_CONTENTS = 2**20
"""Maximum size in bytes of the table of contents of an `.npz` file."""
PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
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
    """A stored array does not fit the run; the text names it and both shapes."""

    def __init__(self, name: str, expected: str | None, stored: str | None) -> None:
        text = f"expected {expected}, found {stored}"
        if stored is None:
            text = "missing"
        if expected is None:
            text = "no such weight in this run"
        super().__init__(f"{name}: {text}")
        self.name, self.expected, self.stored = name, expected, stored


class ExpectedState(NamedTuple):
    """The arrays that a run can restore."""

    shared: Expected | ExpectedFrom
    """State that is equal on all ranks."""
    rows: Expected | ExpectedFrom
    """Full replay of a worker; stored arrays may have fewer rows."""
    environment: Declared


@dataclasses.dataclass(frozen=True)
class ExpectedAtMost:
    """An `ExpectedFrom` of a run that knows how large its arrays can be."""

    most: Expected
    of: ExpectedFrom

    def __call__(self, stored: Expected) -> Expected:
        return self.of(stored)


class Entry(NamedTuple):
    """One file in a manifest."""

    path: str
    """Relative to the checkpoint; for replay, to the directory of all checkpoints."""
    size: int
    sha256: str


# --- expected arrays and values ---------------------------------------------------------------


def expected_of(arrays: Mapping[str, npt.NDArray[Any]], free: bool = False) -> dict[str, Kind]:
    """Returns types and shapes of arrays; with `free`, the first axis may have any length."""
    return {
        name: (array.dtype, (FREE, *array.shape[1:]) if free and array.ndim else array.shape)
        for name, array in arrays.items()
    }


def check_fit(stored: Expected, expected: Expected, rows: bool = False) -> None:
    """A MisfitError if stored arrays do not fit; with `rows`, they may have fewer rows."""
    for name, (dtype, shape) in expected.items():
        if name not in stored:
            raise MisfitError(name, f"{dtype} {shape}", None)
        found_dtype, found_shape = stored[name]
        fitting = found_shape == shape
        if rows and shape and found_shape:
            enough = shape[0] == FREE or found_shape[0] <= shape[0]
            fitting = found_shape[1:] == shape[1:] and enough
        if not fitting or found_dtype != dtype:
            most = " at most" if rows and shape else ""
            raise MisfitError(name, f"{dtype} {shape}{most}", f"{found_dtype} {found_shape}")
    for name in sorted(set(stored) - set(expected)):
        raise MisfitError(name, None, "{} {}".format(*stored[name]))


def restore_fields(template: Own, data: Any, name: str) -> Own:
    """Makes a copy of a dataclass with counts or shares from JSON, checked by its hints."""
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
    """Returns a checkpoint's best success rate, or None; a ValueError if it is not in [0, 1]."""
    if value is None:
        return None
    if not fits(value, float) or not 0.0 <= value <= 1.0:
        raise ValueError(f"best_success_rate: not what a run saves: {str(value)[:80]}")
    return float(value)


def declared_in(meta: Mapping[str, Any]) -> Declared | None:
    """Returns the spaces of a checkpoint's environment, or a ValueError; earlier ones have None."""
    declared = meta.get(ENVIRONMENT)
    if isinstance(declared, dict):  # checkpoints of earlier versions name no type of actions
        declared = {"type": Declared.type, **declared}
    return None if declared is None else restore_fields(Declared(), declared, ENVIRONMENT)


def is_count(value: Any) -> bool:
    return fits(value, int) and value >= 0


def check_path(path: str) -> None:
    """A ValueError unless a name is a plain relative path, which cannot leave its directory."""
    if not PATH.fullmatch(path):
        raise ValueError(f"expected a name of letters, digits and _ . - /, got {path!r}")


# --- files ------------------------------------------------------------------------------------


def write_file(base: Path, path: str, content: bytes | Mapping[str, npt.NDArray[Any]]) -> Entry:
    """Writes and syncs a new file of bytes, or of arrays of numbers as an uncompressed `.npz`."""
    if not isinstance(content, bytes):
        for name, array in content.items():
            check_path(name)
            if came := instead_of_numbers(array, array.shape):  # which could not be read again
                raise ValueError(f"{name}: expected an array of numbers, got {came}")
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
    """Reads a JSON object; a DamagedError if the file is not what was saved."""
    with _verified(base, entry, _LARGEST_DOCUMENT) as file:
        content = file.read(entry.size)
    try:
        value = parse_json(content)
    except ValueError as error:
        raise DamagedError(f"{entry.path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise DamagedError(f"{entry.path}: expected a JSON object")
    return value


def read_arrays(
    base: Path,
    entry: Entry,
    expected: Expected | ExpectedFrom | None = None,
    wanted: tuple[str, ...] = ("",),
    rows: bool = False,
) -> tuple[Arrays, tuple[str, ...]]:
    """Returns the arrays with a wanted prefix, and all names; refuses any that are not as saved."""
    arrays: Arrays = {}
    with _verified(base, entry, _largest(expected)) as file:
        try:
            with zipfile.ZipFile(cast(IO[bytes], _InPieces(file))) as archive:
                members = _members(archive, entry.size)
                chosen = {name: m for name, m in members.items() if name.startswith(wanted)}
                headers = {name: _read_header(archive, m) for name, m in chosen.items()}
                fitting = expected(headers) if callable(expected) else expected
                if fitting is not None:
                    fitting = {n: kind for n, kind in fitting.items() if n.startswith(wanted)}
                    check_fit(headers, fitting, rows)
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


def _largest(expected: Expected | ExpectedFrom | None) -> int:
    most = expected.most if isinstance(expected, ExpectedAtMost) else expected
    if not most or callable(most):
        return _LARGEST_STATE
    sized = [(dtype, shape) for dtype, shape in most.values() if FREE not in shape]
    free = _LARGEST_STATE if len(sized) < len(most) else 0
    return free + 2 * sum(math.prod(shape) * dtype.itemsize for dtype, shape in sized) + _MARGIN


class _InPieces:
    """A file with a limit on each read, which bounds a zip's table of contents."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_CONTENTS:
            raise ValueError("its table of contents is too long")
        return self._file.read(size)


@contextlib.contextmanager
def _verified(base: Path, entry: Entry, most: int) -> Iterator[io.BufferedReader]:
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
    with archive.open(member) as content:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(content)](content)
        if dtype.kind not in _KINDS:
            raise ValueError(f"expected numbers, got {dtype}")
        if content.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"shape {shape} does not fit the size of the file")
    return dtype, shape
