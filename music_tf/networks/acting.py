"""Acts in plain numpy: a few rows cost far less than a compiled call, and need no TensorFlow."""

from collections.abc import Sequence

import numpy as np

from music_tf.types import Array

LOG_DEVIATION_RANGE = (-5.0, 2.0)
"""Bounds of a Gaussian actor's log-deviation before squashing."""


def deterministic_layers(depth: int) -> list[str]:
    """Names of a deterministic actor's layers, in the order of its weights."""
    return [*_hidden_names(depth), "action"]


def gaussian_layers(depth: int) -> list[str]:
    """Names of a Gaussian actor's layers, in the order of its weights."""
    return [*_hidden_names(depth), "features", "log_deviation", "mean"]  # as Keras lists them


def deterministic_action(weights: Sequence[Array], inputs: Array) -> Array:
    """Returns the actions [E, A] of a deterministic actor for its inputs [E, I]."""
    depth = len(weights) // 2 - len(deterministic_layers(0))
    action: Array = np.tanh(dense(weights, hidden_layers(weights, inputs, depth), depth))
    return action


def gaussian_action(weights: Sequence[Array], inputs: Array, noise: Array | None) -> Array:
    """Returns the squashed mean of a Gaussian actor, or a sample where noise is given, [E, A]."""
    depth = len(weights) // 2 - len(gaussian_layers(0))
    features = dense(weights, hidden_layers(weights, inputs, depth), depth)
    raw = dense(weights, features, depth + 2)
    if noise is None:
        return np.tanh(raw)
    low, high = LOG_DEVIATION_RANGE
    squashed = np.tanh(dense(weights, features, depth + 1))
    deviation = np.exp(low + 0.5 * (high - low) * (squashed + 1.0))
    return np.tanh(raw + deviation * noise)


def hidden_layers(weights: Sequence[Array], inputs: Array, layers: int) -> Array:
    """Applies the first layers of a network, each followed by a ReLU.

    Args:
        weights: Kernels and biases in turn, as a Keras model lists them.
        inputs: Shape [E, I].
        layers: How many.

    Returns:
        Activations, shape [E, units of the last layer].
    """
    for index in range(layers):
        inputs = np.maximum(dense(weights, inputs, index), 0.0)
    return inputs


def dense(weights: Sequence[Array], inputs: Array, index: int) -> Array:
    """Applies the layer `index` of a network, without an activation."""
    outputs: Array = inputs @ weights[2 * index] + weights[2 * index + 1]
    return outputs


def _hidden_names(depth: int) -> list[str]:
    return [f"hidden_{index}" for index in range(depth)]
