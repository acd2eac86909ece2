"""The learner's policy at fixed weights."""

import numpy as np

from music_tf.agents.base import ActorWeights, Learner
from music_tf.networks.acting import NetworkInputs
from music_tf.rollout import Policy
from music_tf.types import Array


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
