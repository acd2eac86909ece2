"""The evaluation protocol: deterministic policy, fixed seeds by episode index, all ranks share.

Also what a policy is compared with: a random one, and itself under noise.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from music_tf.config.settings import Config
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.measures.behaviour import summarize
from music_tf.randomness import reset_seeds, stream
from music_tf.rollout import Conditions, Perturbation, Policy, play
from music_tf.types import Array, EnvSpec, Episodes, Metrics

_SEED = 20210308
"""Evaluation episodes are the same for every run, whatever its own seed."""

Added: TypeAlias = Callable[[int], Array]
"""What is added to the actions of an episode before they are clipped, [T, A], by its index."""


class Evaluation(NamedTuple):
    """Measures any policy on the evaluation episodes of a run; all ranks call it together."""

    envs: LockstepEnvs
    """Of this rank."""
    config: Config
    """Of the run."""
    comm: Communicator

    def play(
        self,
        policy: Policy,
        episodes: int,
        skill: int | None = None,
        added: Added | None = None,
    ) -> Episodes:
        """Plays without exploration, under the goals of training.

        A policy that knew only zero goals does anything under others. Skills take turns, unless
        the configuration or `skill` pins one of them.
        """
        config = self.config
        pinned = config.pinned_skill if skill is None else skill
        conditions = evaluation_conditions(
            range(episodes), self.envs.spec.goal_dim, config.goals == "zero", config.skills, pinned
        )
        return evaluate(self.envs, policy, conditions, self.comm, added)

    def behaviour(self, played: Episodes) -> Metrics:
        """Returns the behaviour metrics of episodes, and their success where goals count."""
        metrics = summarize(played.observation, played.length, self.envs.info)
        if self.config.goals == "environment":
            metrics["eval/success_rate"] = float(played.success.mean())
        return metrics


def evaluation_conditions(
    indices: Sequence[int],
    goal_dim: int,
    zero_goals: bool,
    skills: int,
    pinned: int | None = None,
) -> Conditions:
    """Returns seeds, goals and skills of evaluation episodes, each fixed by its index.

    Args:
        indices: Of the episodes.
        goal_dim: Size of a goal.
        zero_goals: Plays under zero goals instead of the environment's.
        skills: Number K; skills take turns, so that each gets an even share.
        pinned: A skill that all episodes follow instead.
    """
    seeds = [int(reset_seeds(stream(_SEED, "evaluation", 0, index), 1)[0]) for index in indices]
    chosen = [index % skills if pinned is None else pinned for index in indices]
    goals = np.zeros([len(indices), goal_dim], np.float32) if zero_goals else None
    return Conditions(np.array(seeds), goals, np.eye(skills, dtype=np.float32)[chosen])


def evaluate(
    envs: LockstepEnvs,
    policy: Policy,
    conditions: Conditions,
    comm: Communicator,
    added: Added | None = None,
) -> Episodes:
    """Plays episodes, shared out over ranks in batches, and returns all of them on every rank.

    Args:
        envs: Of this rank.
        policy: Played without exploration.
        conditions: Of all episodes.
        comm: The ranks; each must call this together.
        added: What is added to the actions of each episode, by its index; None for nothing.

    Returns:
        The episodes in the order of the conditions; the same whatever the number of ranks, up
        to what the size of a batch does to the last bits of an action.

    Raises:
        NumbersFault: On every rank, where the policy returned an action that is not finite on any.
    """
    result = comm.together(lambda: _own_part(envs, policy, conditions, comm, added))
    layout = comm.share([(name, v.shape, v.dtype.str) for name, v in result.items()])
    whole = {name: result.get(name, np.zeros(shape, kind)) for name, shape, kind in layout}
    return Episodes.from_named({name: _summed(values, comm) for name, values in whole.items()})


def _own_part(
    envs: LockstepEnvs,
    policy: Policy,
    conditions: Conditions,
    comm: Communicator,
    added: Added | None,
) -> dict[str, np.ndarray]:
    """Plays this rank's share, among the rows of all episodes; the others are zeros."""
    total, width = len(conditions.seeds), len(envs)
    result: dict[str, np.ndarray] = {}
    for start in range(comm.rank * width, total, comm.size * width):
        wanted = np.arange(start, start + width) % total
        goals = None if conditions.goals is None else conditions.goals[wanted]
        batch = Conditions(conditions.seeds[wanted], goals, conditions.skills[wanted])
        explore = None
        if added is not None:
            actions = np.stack([added(int(index)) for index in wanted], axis=1)  # [T, E, A]
            nothing = np.zeros_like(actions)
            explore = Perturbation(actions, np.zeros(actions.shape[:2], bool), nothing, nothing)
        played = play(envs, policy, batch, explore).named()
        kept = min(width, total - start)
        for name, values in played.items():
            rows = result.setdefault(name, np.zeros([total, *values.shape[1:]], values.dtype))
            rows[start : start + kept] = values[:kept]
    return result


def _summed(values: np.ndarray, comm: Communicator) -> np.ndarray:
    """Adds up what each rank played; all others hold zeros there."""
    if values.dtype == np.bool_:
        return comm.sum_in_place(values.astype(np.int64)).astype(np.bool_)
    return comm.sum_in_place(values)


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """Returns the 95 % Wilson score interval of a success rate, both ends in [0, 1]."""
    if not episodes:
        return 0.0, 1.0
    z = 1.959964
    rate = successes / episodes
    centre = rate + z * z / (2 * episodes)
    spread = z * math.sqrt(rate * (1 - rate) / episodes + z * z / (4 * episodes**2))
    scale = 1 + z * z / episodes
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def random_actions(spec: EnvSpec, draw: int = 0) -> Added:
    """Returns the uniform actions of a random policy, the same on any number of ranks.

    Args:
        spec: Of the environment.
        draw: Different numbers give other actions in the same episodes.
    """
    shape = (spec.max_episode_steps, spec.action_dim)

    def added(index: int) -> Array:
        generator = stream(0, "comparison/random", draw, index)
        return generator.uniform(-1.0, 1.0, shape).astype(np.float32)

    return added


def noise(spec: EnvSpec, deviation: float, draw: int, beside: Added | None = None) -> Added:
    """Returns Gaussian noise for the actions of each episode.

    Args:
        spec: Of the environment.
        deviation: Of each component.
        draw: Different numbers give other noise.
        beside: What else is added.
    """
    shape = (spec.max_episode_steps, spec.action_dim)

    def added(index: int) -> Array:
        generator = stream(_SEED, "judging/noise", draw, index)
        drawn = np.float32(deviation) * generator.standard_normal(shape, np.float32)
        return drawn if beside is None else drawn + beside(index)

    return added


def still(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
    """The policy that does nothing, for actions that are random alone."""
    del observation, goal, skill
    return np.zeros_like(noise)
