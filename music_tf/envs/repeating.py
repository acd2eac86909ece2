"""Checks that an environment steps, and repeats itself under one seed, so that runs are exact."""

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import layers_of
from music_tf.errors import EnvironmentFault
from music_tf.types import Array, Floats

WITH_STATISTICS: Mapping[type, str] = {
    gymnasium.wrappers.NormalizeObservation: "inputs of networks are normalised here",
    gymnasium.wrappers.NormalizeReward: "--task.scale X scales rewards",
}
"""Wrappers whose statistics go on from episode to episode, and what is here in their place."""
STEPS = 30
_EPISODES = 4
"""Number of episodes, of which one must get beyond its first step."""
_SECONDS = 0.3
"""Time limit of the first of three episodes, at the start of a run."""


class Difference(NamedTuple):
    """Where two episodes of one seed differ."""

    step: int
    """The first step that differs."""
    of_rewards: bool
    """Whether nothing but rewards differs."""


def first_difference(envs: LockstepEnvs, seconds: float = math.inf) -> Difference | None:
    """Plays an episode of random actions, another, and the first again; says where this differs."""
    start = time.monotonic()
    first: list[Array] = []
    for state in states(envs, 1, STEPS):
        first.append(state)
        if time.monotonic() - start > seconds:
            break
    last = len(first) - 1
    list(states(envs, 2, last))
    # beside the last episode plays a second environment, which should share nothing with the first
    again = list(states(envs, 1, last, beside=len(envs) > 1))
    pairs = list(itertools.zip_longest(first, again, fillvalue=np.empty(0)))
    for step, pair in enumerate(pairs):
        if not np.array_equal(*pair):
            others = all(np.array_equal(state[:-1], same_state[:-1]) for state, same_state in pairs)
            return Difference(step, of_rewards=others)
    return None


def alike(states: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether episodes have equal states, bit for bit."""
    return len(states) == len(others) and all(map(np.array_equal, states, others))


def statistics_of(environment: gymnasium.Env[Any, Any]) -> tuple[str, str] | None:
    """Returns the fault of a wrapper with statistics, also inside a family, and the cure."""
    inside = getattr(environment.unwrapped, "current", environment.unwrapped)
    for layer in (*layers_of(environment), *layers_of(inside)):
        for wrapper, instead in WITH_STATISTICS.items():
            if isinstance(layer, wrapper):
                fault = f": the statistics of {wrapper.__name__} go on from episode to episode"
                return fault, f"leave the wrapper out: {instead}"
    return None


def check_steps(envs: LockstepEnvs) -> None:
    """Checks that an episode gets beyond its first step, in the first of the environments."""
    still, fault = np.zeros((1, envs.spec.action_dim), np.float32), ""
    for seed in range(_EPISODES):
        envs.reset([0], [seed])
        fault = envs.step(still, [0]).faults[0] or ""
        if not fault:
            return
    episodes = f"{_EPISODES} episodes failed in their first step"
    raise EnvironmentFault(f"{episodes}, the last with\n{fault}")


def repeats_itself(envs: LockstepEnvs, rewards: bool = True) -> bool:
    """Whether an environment seems to repeat itself; a fault counts as yes: training raises it."""
    if envs.nondeterministic:
        return False
    try:
        differs = first_difference(envs, _SECONDS)
    except EnvironmentFault:
        return True
    return differs is None or (differs.of_rewards and not rewards)


def states(
    envs: LockstepEnvs, seed: int, steps: int, beside: bool = False, task: Floats | None = None
) -> Iterator[Array]:
    """Plays random actions; yields observation, goals, end and reward, [O + 2G + 2] a state."""
    random = np.random.default_rng(seed)
    first = envs.reset([0], [seed], tasks=None if task is None else task[None])
    yield np.concatenate([*(part[0] for part in first[:3]), np.zeros(2, "f")])
    if beside:  # the second environment plays another episode at the same time
        envs.reset([1], [seed + 1])
    for _ in range(min(steps, envs.spec.max_episode_steps)):
        action = random.uniform(-1.0, 1.0, (1, envs.spec.action_dim)).astype(np.float32)
        if beside:
            other = envs.step(-action, [1])
            beside = not (other.terminated[0] or other.truncated[0])
        result = envs.step(action, [0])
        if result.faults[0] is not None:
            raise EnvironmentFault(result.faults[0])
        yield np.concatenate([*(part[0] for part in result[:3]), result.terminated, result.reward])
        if result.terminated[0] or result.truncated[0]:
            return
