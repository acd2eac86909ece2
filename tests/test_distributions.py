import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.distributions import sample_tanh_gaussian, tanh_gaussian
from tests.kit.batches import gradients


@pytest.fixture(scope="module")
def parts():
    generator = np.random.default_rng(0)
    mean = tf.constant(generator.uniform(-0.7, 0.7, (6, 4)), tf.float32)
    log_deviation = tf.constant(generator.uniform(-3.0, -0.5, (6, 4)), tf.float32)
    noise = tf.constant(generator.normal(size=(6, 4)), tf.float32)
    return mean, log_deviation, noise


def test_a_sample_is_the_tanh_of_mean_plus_scaled_noise():
    found = sample_tanh_gaussian(*map(tf.constant, ([[0.5]], [[math.log(2.0)]], [[-1.0]])))
    # x = 0.5 + 2 (-1) = -1.5; log N = -1/2 - log 2 - log(2 pi) / 2 = -2.112086
    # log(1 - tanh(1.5)^2) = log(0.1807066) = -1.710880; log pi = -2.112086 + 1.710880
    np.testing.assert_allclose(found.action, [[math.tanh(-1.5)]], rtol=1e-6)
    np.testing.assert_allclose(found.log_density, [-0.401206], rtol=1e-5)


def test_log_densities_agree_with_tensorflow_probability(parts):
    mean, log_deviation, _ = parts
    drawn = sample_tanh_gaussian(*parts)
    reference = tanh_gaussian(mean, log_deviation)
    assert np.abs(drawn.action).max() < 0.99
    np.testing.assert_allclose(
        drawn.log_density, reference.log_prob(drawn.action), rtol=1e-4, atol=1e-4
    )


def test_log_densities_are_those_of_the_change_of_variables_in_double_precision(parts):
    mean, log_deviation, noise = (np.asarray(part, np.float64) for part in parts)
    raw = mean + np.exp(log_deviation) * noise
    normal = -0.5 * noise**2 - log_deviation - 0.5 * np.log(2.0 * np.pi)
    expected = np.sum(normal - np.log(1.0 - np.tanh(raw) ** 2), axis=-1)
    np.testing.assert_allclose(sample_tanh_gaussian(*parts).log_density, expected, rtol=1e-4)


def test_the_density_integrates_to_one():
    noise = np.linspace(-6.0, 6.0, 2001)[:, None]
    drawn = sample_tanh_gaussian(
        tf.fill([2001, 1], 0.3), tf.fill([2001, 1], -1.0), tf.constant(noise, tf.float32)
    )
    density = np.exp(drawn.log_density.numpy())
    assert np.trapezoid(density, drawn.action[:, 0].numpy()) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("raw", [-30.0, 30.0])
def test_saturated_actions_have_finite_densities_and_gradients(raw):
    def log_density(mean, log_deviation):
        return sample_tanh_gaussian(mean, log_deviation, tf.zeros([1, 1])).log_density

    found, on_parts = gradients(log_density, [[raw]], [[2.0]])
    assert all(np.isfinite(gradient).all() for gradient in on_parts)
    # -2 - log(2 pi) / 2 - 2 (log 2 - 30) = 55.69
    np.testing.assert_allclose(found, [55.6948], rtol=1e-4)


def test_samples_are_reparameterised(parts):
    _, log_deviation, noise = parts
    action, by_part = gradients(lambda *given: sample_tanh_gaussian(*given).action, *parts)
    slope = 1.0 - np.square(action)
    np.testing.assert_allclose(by_part[0], slope, rtol=1e-4)
    np.testing.assert_allclose(by_part[1], slope * np.exp(log_deviation) * noise, rtol=1e-4)


@pytest.mark.parametrize(("epsilon", "expected"), [(False, -1.472369), (True, -1.472373)])
def test_both_corrections_for_squashing_have_their_value(epsilon, expected):
    mean, deviation, raw = np.float32([[0.3, -0.5]]), np.float32([[0.5, 1.0]]), [[0.1, 1.2]]
    noise = (np.float32(raw) - mean) / deviation
    drawn = sample_tanh_gaussian(*map(tf.constant, (mean, np.log(deviation), noise)), epsilon)
    np.testing.assert_allclose(drawn.action, [[0.099668, 0.833655]], rtol=1e-5)
    np.testing.assert_allclose(drawn.log_density, [expected], rtol=0.0, atol=1.5e-6)


def test_the_added_epsilon_bounds_the_density_near_saturation():
    drawn = sample_tanh_gaussian(*map(tf.constant, ([[30.0]], [[0.0]], [[0.0]])), epsilon=True)
    # -log(2 pi) / 2 - log(1e-6) = 12.8966
    np.testing.assert_allclose(drawn.log_density, [12.8966], rtol=1e-5)
