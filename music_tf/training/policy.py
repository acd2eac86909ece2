"""Policies that can be played: the learner's at fixed weights, and a random one."""

import numpy as np

from music_tf.agents.base import ActorWeights, Learner
from music_tf.normalizer import NetworkInputs
from music_tf.rollout import Policy
from music_tf.types import Array


def learned_policy(
    learner: Learner, weights: ActorWeights, inputs: NetworkInputs, sample: bool = False
) -> Policy:
    """Returns a learner's policy at fixed weights and moments.

    Args:
        learner: Its `act` is what is played.
        weights: Of its actor.
        inputs: How observations are normalised.
        sample: Draws from a stochastic policy instead of taking its mean.
    """

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        given = inputs(observation, goal, skill)
        return learner.act(weights, given, noise if sample else None)

    return act


def random_policy(generator: np.random.Generator, action_dim: int) -> Policy:
    """Returns a policy of uniform actions, as a row to compare with."""

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del goal, skill, noise
        return generator.uniform(-1.0, 1.0, (len(observation), action_dim)).astype(np.float32)

    return act
