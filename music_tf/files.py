"""Reads and writes files safely: untrusted ones, and across a crash; standard library only."""

import contextlib
import errno
import io
import json
import math
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DRAFT = ".tmp-"
"""Marks names of what is being written or removed: the next run deletes what is left of it."""
_MOST_VALUES = 2**20
"""Values in a JSON document; parsed, that many stay below 100 MB."""


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file for reading; a pipe, a device or a folder is refused and not waited for.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def read_at_most(path: Path, limit: int) -> bytes:
    """Reads a regular file of at most `limit` bytes, so that none can fill the memory.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger.
    """
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))
    return content


def read_json(path: Path, limit: int) -> Any:
    """Reads a JSON document of at most `limit` bytes, whoever wrote it.

    Raises:
        OSError: As of `read_at_most`.
        ValueError: As of `parse_json`.
    """
    return parse_json(read_at_most(path, limit))


def parse_json(content: bytes | str) -> Any:
    """Parses JSON of which nobody knows who wrote it; every number in it is finite.

    Raises:
        ValueError: It is none, nested too deeply, or holds more values than memory is meant for.
    """
    text = content if isinstance(content, str) else content.decode()
    if sum(map(text.count, "[{,")) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a JSON number")
    return number


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file new content; a crash leaves the old or the new content, nothing between.

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    draft = path.with_name(f"{path.name}{DRAFT}{os.getpid()}")
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync_directory(path.parent)


def remove_drafts(directory: Path, name: str = "*") -> None:
    """Removes what a process that was killed left half written or half removed in a directory.

    Raises:
        OSError: It cannot be removed.
    """
    for draft in directory.glob(f"{name}{DRAFT}*"):
        if draft.is_dir() and not draft.is_symlink():
            shutil.rmtree(draft)
        else:
            draft.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Makes names created in or renamed into a directory survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def describe(error: OSError) -> str:
    """Returns what the system said and about which file."""
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)


def links_and_devices(directory: Path) -> Iterator[str]:
    """Yields every entry below a directory that is neither a folder nor a regular file.

    Through them a reader or writer would leave the directory, or wait for ever.
    """
    folders = [str(directory)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield entry.path
