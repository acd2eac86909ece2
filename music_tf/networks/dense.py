"""Dense networks in plain numpy, for acting: a few rows cost far less than a compiled call."""

from collections.abc import Sequence

import numpy as np

from music_tf.types import Array


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
