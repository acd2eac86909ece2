"""How fast a film runs, which states of an episode it shows, and what is said while it is drawn."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")
Steps: TypeAlias = npt.NDArray[np.int64]
"""Lengths of episodes, or steps of one."""

_MOST_FRAMES_PER_SECOND = 30
_LONGEST = 20.0
"""Seconds that a film gives an episode at most."""
_TIMED = 4
"""Pictures after which the rest is estimated; the first of them takes longest."""
_SECONDS_BETWEEN_LINES = 10.0
_MINUTE, _LONG = 60.0, 100.0


class Pace(NamedTuple):
    """How a film shows episodes: as fast as they are, or faster where they are long."""

    every: int
    """Steps from one frame to the next of an episode that is shown as fast as it is."""
    frames_per_second: float

    def shown(self, steps: int) -> Steps:
        """Returns the steps of an episode that are shown, from 0 to the last, in order."""
        every = self.every * max(1, math.ceil(steps / self.every / self._room))
        return np.append(np.arange(0, steps, every), steps)

    def most_pictures(self, steps: int) -> int:
        """Returns how many states of an episode of at most so many steps are shown at most."""
        return 1 + min(math.ceil(steps / self.every), self._room)

    @property
    def _room(self) -> int:
        return max(1, int(_LONGEST * self.frames_per_second))


def pace_of(steps_per_second: float) -> Pace:
    """Returns how a film shows an environment that makes so many steps in a second of its time."""
    every = math.ceil(steps_per_second / _MOST_FRAMES_PER_SECOND)
    return Pace(every, steps_per_second / every)


def reported(
    pictures: Iterable[Item],
    most: int,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Item]:
    """Yields pictures; says soon how long all of them take, then every ten seconds what is left.

    Args:
        pictures: Drawn one after the other, each after the one before has been written.
        most: How many there are at most.
        say: Takes a line.
        clock: Tells seconds.
    """
    first = spoken = math.nan
    for done, picture in enumerate(pictures):
        now = clock()
        if done == 0:
            first = now
        elif done == _TIMED or now - spoken >= _SECONDS_BETWEEN_LINES:
            left = duration((now - first) / done * max(0, most - done))
            say(f"{done} of at most {most} pictures are drawn, about {left} left")
            spoken = now
        yield picture


def duration(seconds: float) -> str:
    """Returns a time for people to read, in steps of five seconds, or in minutes."""
    if seconds >= _LONG:
        return f"{seconds / _MINUTE:.0f} minutes"
    return f"{5 * max(1, math.ceil(seconds / 5))} s"
