"""Reading what anybody may have put into a run directory; standard library only."""

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file for reading; a pipe, a device or a folder is refused and not waited for.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield file


def read_at_most(path: Path, limit: int) -> bytes:
    """Returns the content of a regular file of at most `limit` bytes.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger.
    """
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))
    return content


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


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
