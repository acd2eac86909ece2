"""The narrow network and the gradient that it derives by itself."""

import numpy as np
import pytest
import tensorflow as tf

from music_tf.networks.two_layers import two_layers
from tests.kit.batches import gradients


def test_one_row_by_hand():
    rows = tf.constant([[2.0, 1.0]])
    kernel = tf.constant([[1.0, -1.0], [0.5, 0.0]])
    bias = tf.constant([0.5, 1.0])
    output_kernel = tf.constant([[3.0], [5.0]])

    value, (_, *found) = gradients(
        two_layers, rows, kernel, bias, output_kernel, upstream=tf.constant([[2.0]])
    )

    # x A + a = (3, -1): only the first unit is active, with value 3
    np.testing.assert_array_equal(value, [[9.0]])
    np.testing.assert_array_equal(found[0], [[12.0, 0.0], [6.0, 0.0]])  # 2 * x * 3
    np.testing.assert_array_equal(found[1], [6.0, 0.0])
    np.testing.assert_array_equal(found[2], [[6.0], [0.0]])  # 2 * 3


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
