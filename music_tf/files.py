"""Reads untrusted files and writes files that survive a crash, with the standard library alone."""

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
"""Marks names of unfinished files and folders, which the next run deletes."""
REPLACED = ".replaced"
"""End of the name of a folder while another one takes its place."""
_MOST_VALUES = 2**20
"""Maximum number of values in a JSON document, which need less than 100 MB."""


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a regular file for reading; for a pipe, device or folder an OSError, no waiting."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def read_at_most(path: Path, limit: int) -> bytes:
    """Reads a regular file; an OSError if it has over `limit` bytes, which bounds the memory."""
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))
    return content


def read_json(path: Path, limit: int) -> Any:
    return parse_json(read_at_most(path, limit))


def parse_json(content: bytes | str) -> Any:
    """Parses untrusted JSON; a ValueError if it is too deep or too large, or has inf or nan."""
    text = content if isinstance(content, str) else content.decode()
    if sum(map(text.count, "[{,")) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_object(value: Any) -> dict[str, Any]:
    """Returns a JSON object as it is, and an empty one in place of any other value."""
    return value if isinstance(value, dict) else {}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a JSON number")
    return number


def replace_file(path: Path, data: bytes) -> None:
    """Replaces a file atomically: a crash leaves old or new content, an OSError the old one."""
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
    """Removes unfinished files and folders that a killed process left in a directory."""
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
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)


def links_and_devices(directory: Path) -> Iterator[str]:
    """Yields every entry below a directory that is neither a folder nor a regular file."""
    folders = [str(directory)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield entry.path
