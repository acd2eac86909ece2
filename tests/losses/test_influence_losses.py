import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.influence import (
    influence,
    influence_of_actions,
    variance_of,
)


def gaussians(means, variances):
    return tf.constant(means, tf.float32), tf.constant(variances, tf.float32)


def drawn(*shape, seed=0):
    generator = np.random.default_rng(seed)
    mean = generator.normal(size=shape).astype(np.float32)
    return tf.constant(mean), tf.constant(np.exp(generator.normal(size=shape)), tf.float32)


def test_three_actions_in_the_plane_have_their_known_influence():
    mean, variance = gaussians(
        [[0.0, 0.0], [1.0, 0.5], [-1.0, 0.2]], [[1.0, 0.5], [0.8, 0.5], [1.2, 0.4]]
    )
    variational, product = [0.3929427, 0.6115300, 0.6028754], [0.0, 0.1187358, 0.0362426]
    found = influence_of_actions(mean, variance)
    np.testing.assert_allclose(found, 0.5 * np.add(variational, product), atol=1e-6)
    assert float(influence(mean, variance)) == pytest.approx(0.2937211, abs=1e-6)


def test_influence_is_none_for_equal_predictions_and_at_most_the_log_of_their_number():
    for variance in (1e-8, 1.0, 200.0):
        alike = gaussians(np.ones([8, 3]), np.full([8, 3], variance))
        assert float(influence(*alike)) == pytest.approx(0.0, abs=1e-6)
    assert (influence_of_actions(*drawn(100, 8, 3)).numpy() >= -1e-6).all()
    apart = gaussians(1e3 * np.arange(8.0)[:, None], np.ones([8, 1]))
    # far apart, the variational part is log K and the product (log 2 - 1) / 2 below
    expected = math.log(8.0) + 0.25 * (math.log(2.0) - 1.0)
    np.testing.assert_allclose(influence_of_actions(*apart), expected, atol=1e-5)


def test_variances_begin_at_1_and_keep_within_their_bounds():
    found = variance_of(tf.constant([0.0, -60.0, 1e4, 2.0])).numpy()
    expected = [1.0, 1e-8, 200.0, math.log(1.0 + (math.e - 1.0) * math.e**2)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = variance_of(tf.constant([0.0, -60.0, 1e4]), floor=0.25).numpy()
    np.testing.assert_allclose(found, [1.25, 0.25, 200.0], rtol=1e-6)
