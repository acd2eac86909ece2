"""Episodes that begin alike and part: one seed, the same actions up to a step, then others.

Whatever differs after that step was caused by the action and by nothing else.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.envs.lockstep import LockstepEnvs

Rows: TypeAlias = npt.NDArray[np.float64]
Columns: TypeAlias = tuple[int, ...]
Act: TypeAlias = Callable[[Sequence[Rows]], Rows]
"""Returns an action [A] for the observations [O] of an episode so far."""

LENGTH, HOLD = 50, 10
"""Most steps of an episode, and steps for which a random action is held."""
_PARTS = 0, 1, 2, 4
"""Where branches part, in eighths of an episode, in turns."""
_LEAP, _SLACK = 1.5 * np.pi, 1e-3
"""Least change of an angle that wraps, and how far its range may exceed a whole turn."""


class Branch(NamedTuple):
    """An episode, and how it went without actions after the step at which they part."""

    seed_index: int
    at: int
    rows: Rows  # [T + 1, O]
    goals: Rows  # [T + 1, G]
    actions: Rows  # [T, A]
    twin: Rows | None = None  # [T' + 1, O]; None of the twin itself

    @property
    def still(self) -> bool:
        return self.twin is None and self.at == 0

    def difference_from_twin(self) -> Rows:
        """Returns how far it is from its twin in each step after they part, [S, O]."""
        if self.twin is None:
            return self.rows[:0]
        size = min(len(self.rows), len(self.twin))
        return (self.rows[:size] - self.twin[:size])[self.at + 1 :]


class Player:
    """Plays branches in one environment, and keeps them."""

    def __init__(self, envs: LockstepEnvs) -> None:
        self._envs, self.size = envs, envs.spec.action_dim
        self.length = min(LENGTH, envs.spec.max_episode_steps)
        self.branches: list[Branch] = []
        self.steps, self.seconds = 0, 0.0
        self.fault = ""
        """What broke last, if anything; the episode ended there."""

    def play(self, number: int, act: Act, steps: int) -> Branch:
        """Plays at most so many steps, with actions clipped to [-1, 1], and does not keep them."""
        start, first = time.monotonic(), self._envs.reset([0], [number])
        seen, goals = [first.observation[0].astype(np.float64)], [first.achieved_goal[0]]
        actions: list[Rows] = []
        for _ in range(steps):
            action = np.clip(act(seen), -1.0, 1.0)
            after = self._envs.step(action[None].astype(np.float32), [0])
            if after.faults[0] is not None:
                self.fault = after.faults[0]
                break
            self.steps += 1
            actions.append(action)
            seen.append(after.observation[0].astype(np.float64))
            goals.append(after.achieved_goal[0])
            if after.terminated[0] or after.truncated[0]:
                break
        self.seconds += time.monotonic() - start
        every = np.array(actions).reshape(len(actions), self.size)
        reached = np.stack(goals).astype(np.float64)
        return Branch(number, 0, unwrapped(np.stack(seen)), unwrapped(reached), every)

    def part(self, number: int) -> None:
        """Plays a seed three times: nothing, an action, and its opposite after a common part."""
        random = np.random.default_rng(number)
        for at in (self.length * _PARTS[number % len(_PARTS)] // 8, 0):
            before, after, other = (self._held(random, n) for n in (at, *(self.length - at,) * 2))
            still = self.play(number, replaying(np.concatenate([before, 0.0 * after])), self.length)
            if len(still.rows) > at + 2:  # else it ended before
                break
        self.branches.append(still._replace(at=at))
        other[:HOLD] = -after[:HOLD]
        for last in (after, other):
            branch = self.play(number, replaying(np.concatenate([before, last])), self.length)
            self.branches.append(branch._replace(at=at, twin=still.rows))

    def _held(self, random: np.random.Generator, steps: int) -> Rows:
        """Returns random actions [steps, A], each held for a while; half of them are extreme."""
        drawn = random.uniform(-1.0, 1.0, (steps // HOLD + 1, self.size))
        extreme = random.random((len(drawn), 1)) < 0.5  # noqa: PLR2004
        return np.repeat(np.where(extreme, np.sign(drawn), drawn), HOLD, axis=0)[:steps]


def unwrapped(rows: Rows) -> Rows:
    """Returns rows [T, D] in which angles go on where they leap by a whole turn."""
    leaps = np.abs(np.diff(rows, axis=0)).max(axis=0, initial=0.0) > _LEAP
    leaps &= np.ptp(rows, axis=0) < 2.0 * np.pi + _SLACK
    rows[:, leaps] = np.unwrap(rows[:, leaps], discont=_LEAP, axis=0)
    return rows


def replaying(actions: Rows) -> Act:
    """A policy that replays actions [T, A]."""
    return lambda rows: actions[len(rows) - 1]
