import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.distributions import _library
from music_tf.losses.posterior import (
    kl_of_root,
    kl_to_prior,
    product_of_gaussians,
    product_of_observations,
)
from music_tf.networks.belief import _after_observations

MEANS = np.float32([[0.0, 1.0], [2.0, -1.0], [4.0, 0.0]])
VARIANCES = np.float32([[1.0, 0.5], [1.0, 2.0], [0.5, 1.0]])


def raw(variances):  # what softplus makes these variances of
    return np.log(np.expm1(variances)).astype(np.float32)


def test_a_product_adds_up_precisions_and_is_proportional_to_the_densities_of_factors():
    mean, variance = product_of_gaussians(MEANS, raw(VARIANCES))
    # 1 / (1 + 1 + 2), and (0 + 2 + 8) / 4; 1 / (2 + .5 + 1), and (2 - .5) / 3.5
    np.testing.assert_allclose(variance, [0.25, 1.0 / 3.5], rtol=1e-5)
    np.testing.assert_allclose(mean, [2.5, 1.5 / 3.5], rtol=1e-5)
    library = _library().distributions
    places = np.linspace(-2.0, 3.0, 7, dtype=np.float32)[:, None]
    product = library.Normal(mean, tf.sqrt(variance)).log_prob(places)
    factors = library.Normal(MEANS, np.sqrt(VARIANCES)).log_prob(places[:, None])
    gap = tf.reduce_sum(factors, axis=1) - product
    np.testing.assert_allclose(gap, np.broadcast_to(gap[0], gap.shape), atol=1e-4)


def test_factors_without_variance_have_a_finite_product():
    mean, variance = product_of_gaussians(np.float32([[3.0], [3.0]]), np.float32([[-200.0]] * 2))
    np.testing.assert_allclose(variance, [5e-8], rtol=1e-3)
    np.testing.assert_allclose(mean, [3.0], rtol=1e-5)


def test_the_divergence_is_that_of_tensorflow_probability_and_worked_by_hand():
    mean, variance = product_of_gaussians(MEANS, raw(VARIANCES))
    found = kl_to_prior(mean, variance)
    # half of .25 + 6.25 - 1 - log .25, and of .2857 + .1837 - 1 - log .2857
    expected = 0.5 * (5.5 + math.log(4.0)) + 0.5 * (2 / 7 + 9 / 49 - 1 + math.log(3.5))
    assert float(found) == pytest.approx(expected, rel=1e-5)
    assert float(found) == pytest.approx(3.804223, abs=1e-4)
    library = _library().distributions
    one, other = library.Normal(mean, tf.sqrt(variance)), library.Normal(0.0, 1.0)
    np.testing.assert_allclose(found, tf.reduce_sum(one.kl_divergence(other)), rtol=1e-5)
    assert float(kl_to_prior(tf.zeros([4]), tf.ones([4]))) == 0.0


DIRECTIONS = np.float32([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
VALUES = np.float32([3.0, 2.0, 1.0])


def test_observations_add_up_their_precisions_to_that_of_the_prior():
    mean, root = product_of_observations(DIRECTIONS[:2], VALUES[:2])
    # the precision is diag(1 + 1, 1 + 4), and what is observed adds up to (3, 4)
    np.testing.assert_allclose(root, np.diag(np.sqrt([2.0, 5.0])), rtol=1e-6)
    np.testing.assert_allclose(mean, [1.5, 0.8], rtol=1e-6)
    mean, root = product_of_observations(DIRECTIONS, VALUES)
    # [[3, 1], [1, 6]], of determinant 17, and (4, 5)
    np.testing.assert_allclose(tf.matmul(root, root, transpose_b=True), [[3, 1], [1, 6]], rtol=1e-6)
    np.testing.assert_allclose(mean, [19 / 17, 11 / 17], rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 300.0, 1e4, 1e8])
def test_observations_of_any_length_leave_a_belief_and_usual_ones_their_bits(scale):
    observed = np.float32(scale) * np.random.default_rng(0).standard_normal((3, 6), np.float32)
    mean, root = product_of_observations(observed[:, :5], observed[:, 5])
    assert np.isfinite(mean).all()
    assert np.isfinite(kl_of_root(mean, root))
    # single precision rounds all beside the longest direction
    rounded = pytest.approx(mean.numpy(), abs=0.15)
    assert _after_observations(observed).mean == rounded
    if scale <= 300.0:
        own = tf.eye(5) + tf.matmul(observed[:, :5], observed[:, :5], transpose_a=True)
        np.testing.assert_array_equal(root, tf.linalg.cholesky(own))


def test_many_observations_along_one_line_leave_a_belief():
    generator = np.random.default_rng(0)
    near, line = (
        1.0 + 0.3 * generator.normal(size=(20, 1000, 1)),
        generator.normal(size=(20, 1, 10)),
    )
    mean, _ = product_of_observations(
        tf.constant(300.0 * near * line, tf.float32), tf.ones([20, 1000])
    )
    assert np.isfinite(mean).all()


def test_a_full_divergence_is_that_of_tensorflow_probability_and_0_if_nothing_is_seen():
    library = _library().distributions
    mean, root = product_of_observations(DIRECTIONS, VALUES)
    covariance = np.linalg.inv(np.float64([[3.0, 1.0], [1.0, 6.0]])).astype(np.float32)
    one = library.MultivariateNormalTriL(mean, tf.linalg.cholesky(covariance))
    other = library.MultivariateNormalTriL(tf.zeros(2), tf.eye(2))
    np.testing.assert_allclose(kl_of_root(mean, root), one.kl_divergence(other), rtol=1e-4)
    # half of (6 + 3) / 17 + (19^2 + 11^2) / 17^2 - 2 + log 17
    expected = 0.5 * (9 / 17 + (361 + 121) / 289 - 2.0 + math.log(17.0))
    assert float(kl_of_root(mean, root)) == pytest.approx(expected, rel=1e-4)
    mean, root = product_of_observations(tf.zeros([4, 3]), tf.ones([4]))
    np.testing.assert_array_equal(mean, np.zeros(3))
    np.testing.assert_array_equal(root, np.eye(3))
    assert float(kl_of_root(mean, root)) == 0.0
