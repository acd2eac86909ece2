"""A policy that can be played: a learner, weights and the moments its inputs need."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Learner
from music_tf.compiled import compiled
from music_tf.rollout import Policy
from music_tf.training.update import Inputs
from music_tf.types import Array


class Actor:
    """Compiles a learner's policy once; weights and moments are handed in with every use."""

    def __init__(self, learner: Learner, sample: bool) -> None:
        """Wraps a learner.

        Args:
            learner: Its `act` is what is played.
            sample: Draws from a stochastic policy instead of taking its mean.
        """

        def act(
            weights: Mapping[str, list[tf.Tensor]],
            inputs: Inputs,
            observation: tf.Tensor,
            goal: tf.Tensor,
            skill: tf.Tensor,
            noise: tf.Tensor,
        ) -> tf.Tensor:
            given = inputs(observation, goal, skill)
            return learner.act(weights, given, noise if sample else None)

        self._act = compiled(act)

    def policy(self, weights: Mapping[str, list[tf.Tensor]], inputs: Inputs) -> Policy:
        """Returns the policy at fixed weights and moments."""
        fixed: Inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)

        def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
            arrays = (observation, goal, skill, noise)
            action: Array = self._act(weights, fixed, *map(tf.convert_to_tensor, arrays)).numpy()
            return action

        return act


def random_policy(generator: np.random.Generator, action_dim: int) -> Policy:
    """Returns a policy of uniform actions, as a row to compare with."""

    def act(observation: Array, goal: Array, skill: Array, noise: Array) -> Array:
        del goal, skill, noise
        return generator.uniform(-1.0, 1.0, (len(observation), action_dim)).astype(np.float32)

    return act
