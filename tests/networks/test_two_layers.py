"""The narrow network and the gradient that it derives by itself."""

import numpy as np
import pytest
import tensorflow as tf

from music_tf.networks.two_layers import two_layers
from tests.kit.batches import gradients


@pytest.mark.parametrize(("count", "inputs", "units"), [(1, 1, 1), (7, 3, 5), (300, 6, 128)])
def test_values_and_gradients_are_those_of_automatic_differentiation(count, inputs, units):
    generator = np.random.default_rng(count)
    shapes = [(inputs, units), (units,), (units, 1)]
    rows, upstream, *weights = (
        tf.constant(generator.standard_normal(shape), tf.float32)
        for shape in [(count, inputs), (count, 1), *shapes]
    )

    def plainly(rows, kernel, bias, output_kernel):
        return tf.matmul(tf.nn.relu(tf.matmul(rows, kernel) + bias), output_kernel)

    value, (on_rows, *found) = gradients(two_layers, rows, *weights, upstream=upstream)
    expected_value, (_, *expected) = gradients(plainly, rows, *weights, upstream=upstream)

    assert on_rows is None
    np.testing.assert_allclose(value, expected_value, rtol=1e-5, atol=1e-5)
    for own, plain in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, plain, rtol=1e-4, atol=1e-4)
