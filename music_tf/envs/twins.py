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
_AHEAD, _PLACES, _SAMPLES = 3, 12, 4000
"""Of the model that drives: steps ahead, places that the effect of an action may depend on, and
samples that it is fitted to."""
_LEAP, _SLACK = 1.5 * np.pi, 1e-3
"""Least change of an angle that wraps, and how far its range may exceed a whole turn."""
_RIDGE, _DAMPED = 1e-5, 1e-3
"""Regularisation of its fit and of its inverse, as shares of what they are added to."""


class Branch(NamedTuple):
    """An episode, and how it went without actions after the step at which they part."""

    number: int
    """Which seed it has."""
    at: int
    rows: Rows  # [T + 1, O]
    goals: Rows  # [T + 1, G]
    actions: Rows  # [T, A]
    twin: Rows | None = None  # [T' + 1, O]; None of the twin itself
    driven: tuple[Columns, Columns] | None = None
    """What was driven to what; None where actions were random."""

    @property
    def still(self) -> bool:
        """Whether nothing is done in it from its first step on."""
        return self.twin is None and self.at == 0

    @property
    def at_random(self) -> bool:
        """Whether a random action parts it from its twin."""
        return self.twin is not None and self.driven is None

    def apart(self) -> Rows:
        """Returns how far it is from its twin in each step after they part, [S, O]."""
        if self.twin is None:
            return self.rows[:0]
        size = min(len(self.rows), len(self.twin))
        return (self.rows[:size] - self.twin[:size])[self.at + 1 :]


class Player:
    """Plays branches in one environment, and keeps them."""

    def __init__(self, envs: LockstepEnvs, first: int = 0) -> None:
        """Takes the environment and the first of the seeds that it is reset with."""
        self._envs, self._first = envs, first
        self.size = envs.spec.action_dim
        self.length = min(LENGTH, envs.spec.max_episode_steps)
        self.branches: list[Branch] = []
        self.steps, self.seconds = 0, 0.0
        self.fault = ""
        """What broke last, if anything; the episode ended there."""

    def play(self, number: int, act: Act, steps: int) -> Branch:
        """Plays at most so many steps, with actions clipped to [-1, 1], and does not keep them."""
        begun, found = time.monotonic(), self._envs.reset([0], [self._first + number])
        rows, goals, actions = [found.observation[0]], [found.achieved_goal[0]], []
        seen = [rows[0].astype(np.float64)]
        for _ in range(steps):
            action = np.clip(act(seen), -1.0, 1.0)
            taken = self._envs.step(action[None].astype(np.float32), [0])
            if taken.faults[0] is not None:
                self.fault = taken.faults[0]
                break
            self.steps += 1
            actions.append(action)
            rows.append(taken.observation[0])
            goals.append(taken.achieved_goal[0])
            seen.append(rows[-1].astype(np.float64))
            if taken.terminated[0] or taken.truncated[0]:
                break
        self.seconds += time.monotonic() - begun
        every = np.array(actions).reshape(len(actions), self.size)
        reached = np.stack(goals).astype(np.float64)
        return Branch(number, 0, unwrapped(np.stack(seen)), unwrapped(reached), every)

    def part(self, number: int) -> None:
        """Plays a seed three times: nothing, an action, and its opposite after a common part."""
        random = np.random.default_rng(self._first + number)
        for at in (self.length * _PARTS[number % len(_PARTS)] // 8, 0):
            before, after, other = (self._held(random, n) for n in (at, *(self.length - at,) * 2))
            still = self.play(number, given(np.concatenate([before, 0.0 * after])), self.length)
            if len(still.rows) > at + 2:  # else it ended before
                break
        self.branches.append(still._replace(at=at))
        other[:HOLD] = -after[:HOLD]
        for last in (after, other):
            branch = self.play(number, given(np.concatenate([before, last])), self.length)
            self.branches.append(branch._replace(at=at, twin=still.rows))

    def _held(self, random: np.random.Generator, steps: int) -> Rows:
        """Returns random actions [steps, A], each held for a while; half of them are extreme."""
        drawn = random.uniform(-1.0, 1.0, (steps // HOLD + 1, self.size))
        extreme = random.random((len(drawn), 1)) < 0.5  # noqa: PLR2004
        return np.repeat(np.where(extreme, np.sign(drawn), drawn), HOLD, axis=0)[:steps]

    def drive(
        self, robot: Columns, target: Columns, places: Sequence[int], numbers: range
    ) -> list[Branch]:
        """Plays episodes that take columns `robot` to where as many, `target`, are; keeps them."""
        # `places` are columns that the effect of an action may depend on, and `numbers` the seeds.
        act = driving(self.branches, robot, target, places)
        for number in numbers:
            still = self.play(number, lambda _: np.zeros(self.size), self.length).rows
            branch = self.play(number, act, self.length)
            self.branches.append(branch._replace(twin=still, driven=(robot, target)))
        return self.branches[-len(numbers) :]


def unwrapped(rows: Rows) -> Rows:
    """Returns rows [T, D] in which angles go on where they leap by a whole turn."""
    leaps = np.abs(np.diff(rows, axis=0)).max(axis=0, initial=0.0) > _LEAP
    leaps &= np.ptp(rows, axis=0) < 2.0 * np.pi + _SLACK
    rows[:, leaps] = np.unwrap(rows[:, leaps], discont=_LEAP, axis=0)
    return rows


def given(actions: Rows) -> Act:
    """Returns what takes actions [T, A] one after the other."""
    return lambda rows: actions[len(rows) - 1]


def driving(
    branches: Sequence[Branch], robot: Columns, target: Columns, places: Sequence[int]
) -> Act:
    """Fits how an action that is held moves some columns, and returns what moves them to others.

    The model is linear in the last step of these columns, and bilinear in action and places; so the
    Jacobian of an arm is in it.
    """
    near, own, aim = list(places[:_PLACES]), list(robot), list(target)

    def basis(row: Rows, last: Rows) -> Rows:
        return np.concatenate([[1.0], row[near], row[own] - last[own]])

    inputs, outputs = [], []
    for branch in branches:
        rows, actions = branch.rows, branch.actions
        for t in range(1, len(actions) - _AHEAD + 1):
            if (actions[t : t + _AHEAD] == actions[t]).all():
                known = basis(rows[t], rows[t - 1])
                steered = np.outer(actions[t], known[: 1 + len(near)]).ravel()
                inputs.append(np.concatenate([known, steered]))
                outputs.append(rows[t + _AHEAD][own] - rows[t][own])
    x, y = np.array(inputs)[-_SAMPLES:], np.array(outputs)[-_SAMPLES:]
    unit = x.std(axis=0) + np.abs(x).mean(axis=0) + 1e-9
    x /= unit
    weights = np.linalg.solve(x.T @ x + _RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)
    weights /= unit[:, None]
    size = 1 + len(near) + len(own)
    steering = weights[size:].reshape(-1, 1 + len(near), len(own))  # [A, 1 + places, robot]

    def act(rows: Sequence[Rows]) -> Rows:
        row, last = rows[-1], rows[max(0, len(rows) - 2)]
        known = basis(row, last)
        effect = np.einsum("abr,b->ra", steering, known[: 1 + len(near)])
        wanted = row[aim] - row[own] - known @ weights[:size]
        square = effect @ effect.T
        damped = square + (_DAMPED * np.trace(square) / len(own) + 1e-30) * np.eye(len(own))
        action: Rows = effect.T @ np.linalg.solve(damped, wanted)
        return action

    return act
