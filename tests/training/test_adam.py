import keras
import numpy as np
import pytest
import tensorflow as tf

from music_tf.training.adam import AdamState, adam_step


def run(gradients, rates, start=None):  # the parameters after each of the gradients [U, P]
    parameters = tf.Variable(tf.zeros([gradients.shape[1]]) if start is None else start)
    state = AdamState.zeros(parameters.numpy())
    found = []
    for index, gradient in enumerate(gradients):
        rate = tf.constant(rates, tf.float32)
        adam_step(parameters, tf.constant(gradient), state, tf.constant(index + 1.0), rate)
        found.append(parameters.numpy())
    return np.array(found)


def some_gradients(updates=100, size=40, scale=1.0):
    return scale * np.random.default_rng(0).normal(size=(updates, size)).astype(np.float32)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_a_hundred_steps_agree_with_keras(scale):
    gradients = some_gradients(scale=scale)
    variable = tf.Variable(tf.zeros([40]))
    optimizer = keras.optimizers.Adam(1e-3, epsilon=1e-8)
    expected = []
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [variable])
        expected.append(variable.numpy())
    np.testing.assert_allclose(run(gradients, [1e-3] * 40), expected, rtol=1e-5, atol=1e-8)


def test_each_parameter_has_its_own_rate_and_the_scale_of_gradients_hardly_matters():
    start = np.random.default_rng(1).normal(size=40).astype(np.float32)
    rates, gradients = np.repeat([1e-3, 0.0, 1e-2, 0.0], 10), some_gradients()
    gradients[:, 5:9] = 0.0
    found = run(gradients, rates, start)
    for frozen in (slice(5, 9), slice(10, 20), slice(30, 40)):
        assert (found[:, frozen] == start[frozen]).all()
    assert (found[-1, :5] != start[:5]).all()
    alone = run(gradients[:, 20:30], [1e-2] * 10, start[20:30])
    np.testing.assert_array_equal(found[:, 20:30], alone)
    summed, averaged = run(some_gradients(), [1e-3] * 40), run(some_gradients() / 4, [1e-3] * 40)
    np.testing.assert_allclose(summed, averaged, atol=1e-6)
