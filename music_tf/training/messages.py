"""Messages between learner and actors: orders and answers, serialised as bytes.

Each message begins with a header of int64 numbers, which the receiver checks. One of them is the
CRC-32 of the body: snapshots or the steps that were played, little-endian, without padding.
"""

import itertools
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from music_tf.errors import NumbersFault
from music_tf.networks.acting import Snapshot, arrays_of, snapshot_from
from music_tf.rollout import blank, padded
from music_tf.training.adaptation import Adaptation, no_visits
from music_tf.training.collect import Collected
from music_tf.types import EXTRAS, BoolArray, EnvSpec, Episodes, kept_steps

Data = npt.NDArray[np.uint8]
FORMAT = 5
"""Version of the message format; ranks with another version are refused."""
PLAY, EVALUATE, END, ADAPT, BEGIN = 1, 2, 3, 4, 5
"""Kinds of order: a cycle, evaluation episodes, the end of the run, visits to tasks, the beginning.

The body is a snapshot, at the beginning the shapes of its arrays as JSON, and empty at the end.
"""
_STATES, _STEPS = ("observation", "achieved_goal", EXTRAS), ("action", "reward")
_INTEGER = 8


class OrderHeader(NamedTuple):
    """Header of the learner's message to an actor."""

    kind: int = END
    number: int = 0
    """Number of the order, counted from 1."""
    cycle: int = 0
    at_random: int = 0
    begins_epoch: int = 0
    """Whether unfinished episodes are cut off first."""
    episodes: int = 0
    """Number of evaluation episodes, or of visits to each task."""
    code: int = 0
    """Exit code of the run, for `END`."""
    world: int = 0
    initial: int = 0
    """Whether every task has to be visited."""
    part: int = 0
    """Which tasks are visited: index of a field of `TaskSets`."""
    share: int = 0
    """Which share of the workers is played for."""


class AnswerHeader(NamedTuple):
    """Header of an actor's answer."""

    number: int
    cycle: int
    first_worker: int
    workers: int
    fault: int
    """0, or the exit code of a fault, whose text is the body."""
    ends: int
    """Number of finished episodes or visits."""
    stop: int
    """Whether the actor got a stop signal."""
    played_us: int
    waited_us: int
    """Microseconds of playing, and of waiting for this order."""


Header = TypeVar("Header", OrderHeader, AnswerHeader)


def headed(header: OrderHeader | AnswerHeader, body: bytes) -> Data:
    """Returns a message: format, CRC-32 of the body, header, body."""
    return np.frombuffer(head_of(header, zlib.crc32(body)) + body, np.uint8)


def head_of(header: OrderHeader | AnswerHeader, checked: int) -> bytes:
    """Returns what precedes a body with a CRC-32."""
    numbers = (FORMAT, checked, *map(int, header))
    return struct.pack(f"<{len(numbers)}q", *numbers)


def header_size(kind: type[OrderHeader] | type[AnswerHeader]) -> int:
    return _INTEGER * (2 + len(kind._fields))


def body_of(data: Data, kind: type[OrderHeader] | type[AnswerHeader]) -> Data:
    """Returns what follows the header; a NumbersFault if the checksum differs."""
    _, checked = np.frombuffer(data[: 2 * _INTEGER].tobytes(), "<i8")
    body = data[header_size(kind) :]
    if zlib.crc32(body.data) != checked:
        raise NumbersFault(f"a message of {len(data)} bytes was changed on its way")
    return body


def header_in(data: Data, kind: type[Header]) -> Header:
    """Returns the header; a NumbersFault if it is too short or of another format."""
    size = header_size(kind)
    if len(data) < size:
        raise NumbersFault(f"a message of {len(data)} bytes, expected at least {size}")
    form, _, *numbers = struct.unpack(f"<{size // _INTEGER}q", data[:size].tobytes())
    if form != FORMAT:
        raise NumbersFault(f"a message of format {form}, expected {FORMAT}")
    return kind(*numbers)


class SnapshotFormat:
    """Serialises the arrays of a snapshot as float32 numbers."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Takes the shapes of `arrays_of` a snapshot, by name."""
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        ends = itertools.accumulate(map(math.prod, self.shapes.values()), initial=0)
        self._slices = [slice(*pair) for pair in itertools.pairwise(ends)]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "SnapshotFormat":
        return cls({name: array.shape for name, array in arrays_of(snapshot).items()})

    def pack(self, snapshot: Snapshot) -> bytes:
        return b"".join(array.astype("<f4").tobytes() for array in arrays_of(snapshot).values())

    def unpack(self, data: Data, like: Snapshot) -> Snapshot:
        """Inverts `pack`: returns `like` with the packed arrays in place of its own."""
        numbers = np.frombuffer(data.tobytes(), "<f4")
        named = zip(self.shapes.items(), self._slices, strict=True)
        return snapshot_from(
            like, {name: numbers[part].reshape(shape) for (name, shape), part in named}
        )


class EpisodeFormat:
    """Serialises episodes, or parts of them, of up to `steps` steps, without padding."""

    def __init__(self, spec: EnvSpec, skills: int, steps: int) -> None:
        self._spec, self._skills, self._steps = spec, skills, steps

    def pack(self, collected: Collected) -> bytes:
        """Returns counts, then all arrays by name without padding."""
        named = collected.played.named()
        length = named.pop("length")
        counts = np.array([*collected.parts, collected.unfinished], "<i8").tobytes()
        parts = [counts, collected.succeeded.tobytes(), length.astype("<i8").tobytes()]
        parts += [rows[self._mask_of(name, length)].tobytes() for name, rows in named.items()]
        return b"".join(parts)

    def unpack(self, data: Data, workers: int, ends: int) -> Collected:
        """Inverts `pack`; a NumbersFault for another length or a number that is not finite."""
        rest = data.tobytes()

        def take(count: int, kind: np.dtype) -> np.ndarray:
            nonlocal rest
            size = count * kind.itemsize
            if count < 0 or len(rest) < size:
                raise NumbersFault(f"a message ends after {len(data)} bytes, too early")
            numbers, rest = np.frombuffer(rest[:size], kind), rest[size:]
            return numbers

        *parts, unfinished = take(workers + 1, np.dtype("<i8")).tolist()
        over = take(ends, np.dtype(np.bool_))
        count = sum(parts) if min(*parts, unfinished) >= 0 else -1
        length = take(count, np.dtype("<i8"))
        if not ((length >= 1) & (length <= self._steps)).all():
            raise NumbersFault(
                f"episodes of {length.min()} to {length.max()} steps, expected 1 to {self._steps}"
            )
        skills = np.zeros([count, self._skills], np.float32)
        named = blank(self._spec, skills, self._steps).named()
        named["length"][:] = length
        for name, rows in named.items():
            if name == "length":
                continue
            where = self._mask_of(name, length)
            shape = (int(where.sum()), *rows.shape[where.ndim :])
            numbers = take(math.prod(shape), rows.dtype)
            if rows.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise NumbersFault(f"{name} is not finite")
            rows[where] = numbers.reshape(shape)
        if rest:
            raise NumbersFault(f"a message of {len(data)} bytes, {len(rest)} too many")
        return Collected(padded(Episodes.from_named(named)), parts, over, unfinished)

    def _mask_of(self, name: str, length: np.ndarray) -> BoolArray:
        if name.startswith(_STATES):
            return kept_steps(length + 1, self._steps + 1)
        if name in _STEPS:
            return kept_steps(length, self._steps)
        return np.ones(len(length), np.bool_)


class VisitFormat(NamedTuple):
    """Serialises results of visits to tasks, without the axis of repeats."""

    episodes: int
    latent: int

    def pack(self, visits: Adaptation) -> bytes:
        return b"".join(values.astype("<f4").tobytes() for values in visits)

    def unpack(self, data: Data, workers: int, ends: int) -> Adaptation:
        """Inverts `pack` of `ends` visits; raises as `EpisodeFormat.unpack`."""
        shapes = [values.shape for values in no_visits(max(0, ends), self.episodes, self.latent)]
        sizes = [math.prod(shape) for shape in shapes]
        if len(data) != 4 * sum(sizes):
            raise NumbersFault(f"a message of {len(data)} bytes, expected {4 * sum(sizes)}")
        numbers = np.frombuffer(data.tobytes(), "<f4")
        if not np.isfinite(numbers).all():
            raise NumbersFault("what a visit brought is not finite")
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        return Adaptation(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))
