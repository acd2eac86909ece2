import math
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from music_tf.distributions import (
    _library,
    gaussian_log_density,
    log_prior,
    mixture_log_density,
    sample_tanh_gaussian,
    von_mises_fisher_log_density,
)
from music_tf.errors import EnvironmentFault
from tests.kit.batches import gradients
from tests.kit.cases import cases


@pytest.mark.parametrize("raw", [-30.0, 30.0])
def test_saturated_actions_have_finite_densities_and_gradients(raw):
    def log_density(mean, log_deviation):
        return sample_tanh_gaussian(mean, log_deviation, tf.zeros([1, 1])).log_density

    found, on_parts = gradients(log_density, [[raw]], [[2.0]])
    assert all(np.isfinite(gradient).all() for gradient in on_parts)
    # -2 - log(2 pi) / 2 - 2 (log 2 - 30) = 55.69
    np.testing.assert_allclose(found, [55.6948], rtol=1e-4)


def test_mixtures_and_gaussians_agree_with_tensorflow_probability():
    generator, tfd = np.random.default_rng(0), _library().distributions

    def drawn(*shape):
        return tf.constant(generator.normal(size=shape), tf.float32)

    value, mean, log_deviation = drawn(6, 3), drawn(6, 3), drawn(6, 3)
    reference = tfd.MultivariateNormalDiag(mean, tf.exp(log_deviation)).log_prob(value)
    np.testing.assert_allclose(gaussian_log_density(value, mean, log_deviation), reference, 1e-4)
    logits, means, log_deviations = drawn(6, 4), drawn(6, 4, 3), drawn(6, 4, 3)
    reference = tfd.MixtureSameFamily(
        tfd.Categorical(logits), tfd.MultivariateNormalDiag(means, tf.exp(log_deviations))
    ).log_prob(value)
    found = mixture_log_density(value, logits, means, log_deviations)
    np.testing.assert_allclose(found, reference, rtol=1e-4)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_densities_on_the_sphere_agree_with_tensorflow_probability(size):
    generator = np.random.default_rng(0)
    value, direction = generator.normal(size=(2, 8, size)).astype(np.float32)
    value, direction = (tf.math.l2_normalize(one, axis=-1) for one in (value, direction))
    kappa = tf.constant(generator.uniform(0.1, 30.0, 8), tf.float32)
    reference = _library().distributions.VonMisesFisher(direction, kappa).log_prob(value)
    found = von_mises_fisher_log_density(value, direction, kappa)
    np.testing.assert_allclose(found, reference, rtol=1e-3, atol=1e-3)
    even = von_mises_fisher_log_density(value, direction, tf.zeros([8]))
    np.testing.assert_allclose(even, log_prior("sphere", value), atol=5e-3)


@cases(
    ("stand_in", "reason"),
    (None, "ModuleNotFoundError: "),
    (types.ModuleType("tensorflow_probability"), "AttributeError: .* no attribute 'math'"),
)
def test_a_missing_or_broken_tensorflow_probability_is_one_sentence(stand_in, reason, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_probability", stand_in)
    with pytest.raises(EnvironmentFault, match=rf"cannot be loaded \({reason}") as caught:
        _library.__wrapped__()
    assert len(str(caught.value).splitlines()) == 2


def test_conditions_have_the_density_that_they_are_drawn_with():
    some = tf.constant([[0.3, -0.4]])
    np.testing.assert_allclose(log_prior("box", some), math.log(0.25), rtol=1e-6)
    np.testing.assert_allclose(log_prior("sphere", some), -math.log(2.0 * math.pi), rtol=1e-6)
    # lengths of a ball are uniform: 1 / (2 pi 0.5)
    np.testing.assert_allclose(log_prior("ball", some), -math.log(math.pi), rtol=1e-6)
    np.testing.assert_allclose(
        log_prior("gaussian", some), -0.5 * 0.25 - math.log(2.0 * math.pi), rtol=1e-6
    )


@pytest.mark.parametrize(("epsilon", "expected"), [(False, -1.472369), (True, -1.472373)])
def test_both_corrections_for_squashing_have_their_value(epsilon, expected):
    mean, deviation, raw = np.float32([[0.3, -0.5]]), np.float32([[0.5, 1.0]]), [[0.1, 1.2]]
    noise = (np.float32(raw) - mean) / deviation
    drawn = sample_tanh_gaussian(*map(tf.constant, (mean, np.log(deviation), noise)), epsilon)
    np.testing.assert_allclose(drawn.action, [[0.099668, 0.833655]], rtol=1e-5)
    np.testing.assert_allclose(drawn.log_density, [expected], rtol=0.0, atol=1.5e-6)


def test_the_added_epsilon_bounds_the_density_near_saturation():
    raw = np.linspace(-9.0, 9.0, 37)
    drawn = sample_tanh_gaussian(
        *tf.constant([raw[:, None], 0 * raw[:, None], 0 * raw[:, None]], tf.float32), epsilon=True
    )
    exact = -0.5 * np.log(2 * np.pi) - np.log(1.0 - np.tanh(raw) ** 2 + 1e-6)
    np.testing.assert_allclose(drawn.log_density, exact, rtol=0.0, atol=4e-6)
    drawn = sample_tanh_gaussian(*map(tf.constant, ([[30.0]], [[0.0]], [[0.0]])), epsilon=True)
    # -log(2 pi) / 2 - log(1e-6) = 12.8966
    np.testing.assert_allclose(drawn.log_density, [12.8966], rtol=1e-5)
