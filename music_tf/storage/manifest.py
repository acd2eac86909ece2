"""The list of files that make up a checkpoint, with their sizes and digests, as checked JSON."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from music_tf.storage.durable import DamagedError, StoredFile
from music_tf.storage.files import read_at_most

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
META = "meta.json"
LARGEST_MANIFEST = 2**24
"""Bytes; parsed, that many of JSON stay below 200 MB."""
_LARGEST_FILE = 2**40
_BYTES_PER_ENTRY, _BYTES_PER_VALUE = 80, 6
_BESIDE = 10_000
_HEAD = b'{\n"content": '
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Shard: TypeAlias = tuple[StoredFile, ...]
"""Rows that one worker added to its replay between two checkpoints: one file per array."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """Everything that a checkpoint needs to be restored."""

    epoch: int
    meta: StoredFile
    """Counters and other JSON values; its path is relative to the checkpoint."""
    arrays: tuple[StoredFile, ...]
    """State that all ranks share; paths are relative to the checkpoint."""
    shards: Mapping[str, tuple[Shard, ...]]
    """Replay by worker, in order of saving; paths are relative to all checkpoints' directory."""


def check_name(name: str) -> str:
    """Returns `name` if it is a plain relative path.

    Raises:
        ValueError: It is not, so a file of this name could lie anywhere.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"expected a name of letters, digits and _ . - /, got {name!r}")
    return name


def encode(manifest: Manifest) -> bytes:
    """Returns the manifest as JSON that also holds a digest of itself."""
    content = {
        "format_version": FORMAT_VERSION,
        "epoch": manifest.epoch,
        "meta": dataclasses.asdict(manifest.meta),
        "arrays": [dataclasses.asdict(stored) for stored in manifest.arrays],
        "shards": {
            worker: [[dataclasses.asdict(stored) for stored in shard] for shard in shards]
            for worker, shards in manifest.shards.items()
        },
    }
    return _seal(content)


def read_manifest(checkpoint: Path) -> Manifest:
    """Reads and checks the manifest of a checkpoint directory.

    Raises:
        DamagedError: It is missing, changed, or of another format version.
    """
    try:
        raw = read_at_most(checkpoint / MANIFEST, LARGEST_MANIFEST)
    except FileNotFoundError as error:
        raise DamagedError(f"{MANIFEST}: missing") from error
    except OSError as error:
        raise DamagedError(f"{MANIFEST}: cannot be read ({error.strerror})") from error
    try:
        return _decode(raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST}: not what was saved ({error})") from error


def parse_stored(entry: Mapping[str, Any]) -> StoredFile:
    """Returns a file entry after checking each of its fields.

    Raises:
        ValueError: A field is missing or out of range, or the path leaves its directory.
    """
    if set(entry) != {"name", "path", "size", "sha256"}:
        raise ValueError(f"expected name, path, size and sha256, got {sorted(entry)}")
    size = entry["size"]
    if type(size) is not int or not 0 <= size <= _LARGEST_FILE:
        raise ValueError(f"expected a size in 0..{_LARGEST_FILE}, got {size!r}")
    if not _SHA256.fullmatch(entry["sha256"]):
        raise ValueError(f"expected 64 hexadecimal digits, got {entry['sha256']!r}")
    return StoredFile(check_name(entry["name"]), check_name(entry["path"]), size, entry["sha256"])


def parse_shards(entries: Mapping[str, Any]) -> dict[str, tuple[Shard, ...]]:
    """Returns shard entries by worker after checking each file.

    Raises:
        ValueError: A name, path, size or digest is out of range.
    """
    return {
        check_name(worker): tuple(_parse_files(shard) for shard in shards if shard)
        for worker, shards in entries.items()
    }


def _parse_files(entries: Sequence[Mapping[str, Any]]) -> Shard:
    files = tuple(parse_stored(entry) for entry in entries)
    if len({stored.name for stored in files}) != len(files):
        raise ValueError("a name appears twice")
    return files


def _decode(raw: bytes) -> Manifest:
    content = _parse(raw)["content"]
    if content["format_version"] != FORMAT_VERSION:
        raise ValueError(
            f"written in format version {content['format_version']!r}, this music_tf reads "
            f"{FORMAT_VERSION}"
        )
    text = raw[len(_HEAD) : -len(_tail(b""))]
    if _HEAD + text + _tail(text) != raw:
        raise ValueError("its digest does not match its content")
    if type(content["epoch"]) is not int or content["epoch"] < 0:
        raise ValueError(f"expected an epoch from 0, got {content['epoch']!r}")
    manifest = Manifest(
        content["epoch"],
        parse_stored(content["meta"]),
        _parse_files(content["arrays"]),
        parse_shards(content["shards"]),
    )
    paths = [s.path for shards in manifest.shards.values() for shard in shards for s in shard]
    if len(set(paths)) != len(paths):
        raise ValueError("a file appears twice")
    return manifest


def _parse(raw: bytes) -> Any:
    """Parses JSON, unless it would grow to more than a list of files can."""
    entries, values = raw.count(b"{"), raw.count(b"[") + raw.count(b",")
    if entries * _BYTES_PER_ENTRY + values * _BYTES_PER_VALUE > len(raw) + _BESIDE:
        raise ValueError("more brackets and commas than a list of files has")
    return json.loads(raw)


def _seal(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True, indent=0).encode()
    return _HEAD + text + _tail(text)


def _tail(text: bytes) -> bytes:
    return f',\n"sha256": "{hashlib.sha256(text).hexdigest()}"\n}}'.encode()
