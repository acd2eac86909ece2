"""The speed of a film, the states of an episode that it shows, and its progress messages."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from music_tf.runs.progress import as_clock

Item = TypeVar("Item")
Steps: TypeAlias = npt.NDArray[np.int64]
"""Lengths of episodes, or steps of one."""

_MOST_FRAMES_PER_SECOND = 30
_MOST_SECONDS_OF_AN_EPISODE = 20.0
_TIMED = 4
"""Pictures after which the time left is estimated; the first one takes longest."""
_SECONDS_BETWEEN_LINES = 10.0


class Pace(NamedTuple):
    """Speed of a film: real time, or faster for long episodes."""

    every: int
    """Steps from one frame to the next, in real time."""
    frames_per_second: float

    def shown(self, steps: int) -> Steps:
        every = self.every * max(1, math.ceil(steps / self.every / self._room))
        return np.append(np.arange(0, steps, every), steps)

    def most_pictures(self, steps: int) -> int:
        return 1 + min(math.ceil(steps / self.every), self._room)

    @property
    def _room(self) -> int:
        return max(1, int(_MOST_SECONDS_OF_AN_EPISODE * self.frames_per_second))


def pace_of(steps_per_second: float) -> Pace:
    every = math.ceil(steps_per_second / _MOST_FRAMES_PER_SECOND)
    return Pace(every, steps_per_second / every)


def reported(
    pictures: Iterable[Item],  # each is drawn after the one before has been written
    most: int,  # upper bound of their number
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,  # in seconds
) -> Iterator[Item]:
    """Yields pictures, and says the time left after a few and then every ten seconds."""
    first = spoken = math.nan
    for done, picture in enumerate(pictures):
        now = clock()
        if done == 0:
            first = now
        elif done == _TIMED or now - spoken >= _SECONDS_BETWEEN_LINES:
            left = as_clock((now - first) / done * max(0, most - done))
            say(f"frame {done} of {most}, about {left} left")
            spoken = now
        yield picture
