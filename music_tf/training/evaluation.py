"""The evaluation protocol: deterministic policy, fixed seeds by episode index, all ranks share.

Also the policies that are played: a learner's at fixed weights, a random one, and noise on either.
"""

import math

import numpy as np

from music_tf.agents.base import ActorWeights, Learner
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.normalizer import NetworkInputs
from music_tf.randomness import reset_seeds, stream
from music_tf.rollout import Conditions, Policy, play
from music_tf.types import Array, Episodes

_SEED = 20210308
"""Evaluation episodes are the same for every run, whatever its own seed."""


def evaluation_conditions(
    indices: range, goal_dim: int, zero_goals: bool, skills: int, pinned: int | None = None
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
    envs: LockstepEnvs, policy: Policy, conditions: Conditions, comm: Communicator
) -> Episodes:
    """Plays episodes, shared out over ranks in batches, and returns all of them on every rank.

    Args:
        envs: Of this rank.
        policy: Played without exploration.
        conditions: Of all episodes.
        comm: The ranks; each must call this together.

    Returns:
        The episodes in the order of the conditions; the same whatever the number of ranks, up
        to what the size of a batch does to the last bits of an action.

    Raises:
        NumbersFault: On every rank, where the policy returned an action that is not finite on any.
    """
    result = comm.together(lambda: _own_part(envs, policy, conditions, comm))
    layout = comm.share([(name, v.shape, v.dtype.str) for name, v in result.items()])
    whole = {name: result.get(name, np.zeros(shape, kind)) for name, shape, kind in layout}
    return Episodes.from_named({name: _summed(values, comm) for name, values in whole.items()})


def _own_part(
    envs: LockstepEnvs, policy: Policy, conditions: Conditions, comm: Communicator
) -> dict[str, np.ndarray]:
    """Plays this rank's share, among the rows of all episodes; the others are zeros."""
    total, width = len(conditions.seeds), len(envs)
    result: dict[str, np.ndarray] = {}
    for start in range(comm.rank * width, total, comm.size * width):
        wanted = np.arange(start, start + width) % total
        goals = None if conditions.goals is None else conditions.goals[wanted]
        batch = Conditions(conditions.seeds[wanted], goals, conditions.skills[wanted])
        played = play(envs, policy, batch, None).named()
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


def learned_policy(
    learner: Learner,
    weights: ActorWeights,
    inputs: NetworkInputs,
    sample: bool = False,
    rows: int | None = None,
) -> Policy:
    """Returns a learner's policy at fixed weights and moments.

    The last bit of a matrix product depends on how many rows it has, and contacts amplify it. With
    a fixed number of `rows` at a time a worker acts alike on any number of ranks.

    Args:
        learner: Its `act` is what is played.
        weights: Of its actor.
        inputs: How observations are normalised.
        sample: Draws from a stochastic policy instead of taking its mean.
        rows: How many actions to compute at a time; None for all at once.
    """

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        given = inputs(observation, goal, skill)
        step = rows or len(given)
        parts = (slice(start, start + step) for start in range(0, len(given), step))
        return np.concatenate(
            [learner.act(weights, given[part], noise[part] if sample else None) for part in parts]
        )

    return act


def random_policy(generator: np.random.Generator, action_dim: int) -> Policy:
    """Returns a policy of uniform actions, as a row to compare with."""

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del goal, skill, noise
        return generator.uniform(-1.0, 1.0, (len(observation), action_dim)).astype(np.float32)

    return act


def noisy_policy(policy: Policy, generator: np.random.Generator, deviation: float) -> Policy:
    """Returns a policy whose actions are another's with Gaussian noise, within [-1, 1]."""

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        action = policy(observation, goal, skill, noise)
        drawn = generator.standard_normal(action.shape, np.float32)
        return np.clip(action + np.float32(deviation) * drawn, -1.0, 1.0)

    return act
