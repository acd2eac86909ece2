"""An ensemble of action-value networks, evaluated together."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from music_tf.agents.base import Weights, stopped
from music_tf.config.settings import AgentConfig
from music_tf.networks.models import critic
from music_tf.networks.parameters import Network


class CriticEnsemble:
    """Independent critics with weights handed in."""

    def __init__(
        self, config: AgentConfig, input_dim: int, action_dim: int, seed: np.random.Generator
    ) -> None:
        sizes = config.critic_hidden_sizes or config.hidden_sizes
        self.networks: Sequence[Network] = [
            Network(
                f"critic_{index}",
                critic(input_dim, action_dim, sizes, seed),
                config.critic_learning_rate,
            )
            for index in range(config.critics)
        ]

    def __call__(
        self, weights: Weights, inputs: tf.Tensor, action: tf.Tensor, frozen: bool = False
    ) -> tf.Tensor:
        """Returns action values.

        Args:
            weights: Of every critic, by name.
            inputs: Shape [W, B, I].
            action: Shape [W, B, A].
            frozen: Lets gradients through to the action but not to the weights.

        Returns:
            Values, shape [C, W, B].
        """
        rows = tf.concat([inputs, action], axis=-1)
        flat = tf.reshape(rows, [-1, rows.shape[-1]])
        values = []
        for network in self.networks:
            own = weights[network.name]
            values.append(network(stopped(own) if frozen else own, flat))
        return tf.reshape(tf.stack(values), [len(values), *inputs.shape[:2]])
