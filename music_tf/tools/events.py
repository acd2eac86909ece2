"""Reads pictures back from TensorBoard event files, without TensorFlow."""

import struct
from collections.abc import Iterator
from pathlib import Path

_LARGEST_FILE = 500_000_000
_LENGTH = struct.Struct("<Q")
_BEFORE, _AFTER = 12, 4
"""Bytes around each record: its length and the length's checksum, then its own checksum."""


def read_pictures(directory: Path, name: str) -> dict[int, bytes]:
    """Returns the PNGs of a tag by environment steps, also of a run still going.

    What a resumed run had dropped is left out, as in TensorBoard, and a file that is damaged is
    read as far as it goes.

    Args:
        directory: The run directory.
        name: The tag.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - heavy
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # noqa: PLC0415 - heavy

    found: dict[int, bytes] = {}
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for record in _records(path):
            try:
                event = Event.FromString(record)
            except DecodeError:
                break
            if event.session_log.status == SessionLog.START:
                found = {step: image for step, image in found.items() if step < event.step}
            for value in event.summary.value:
                if value.tag == name and value.HasField("image"):
                    found[event.step] = value.image.encoded_image_string
    return found


def _records(path: Path) -> Iterator[bytes]:
    """Yields the whole records of a file; one that is still being written is left out."""
    try:
        content = path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else b""
    except OSError:
        return
    start = 0
    while start + _BEFORE <= len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        end = start + _BEFORE + length
        if end + _AFTER > len(content):
            return
        yield content[start + _BEFORE : end]
        start = end + _AFTER
