import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.influence import (
    divergences,
    influence,
    influence_of_actions,
    log_overlaps,
    variance_of,
)
from tests.kit.cases import cases


def gaussians(means, variances):
    return tf.constant(means, tf.float32), tf.constant(variances, tf.float32)


def drawn(*shape, seed=0):
    generator = np.random.default_rng(seed)
    mean = generator.normal(size=shape).astype(np.float32)
    return tf.constant(mean), tf.constant(np.exp(generator.normal(size=shape)), tf.float32)


def test_divergences_and_overlaps_have_their_known_values():
    # KL(N(0, 1) || N(1, 2)) = (1 + 1) / 4 - 1 / 2 + log 2 / 2, the other (2 + 1) / 2 - 1 / 2 - ...
    found = divergences(*gaussians([[0.0], [1.0]], [[1.0], [2.0]])).numpy()
    there = 0.5 * (1.0 - 1.0 + math.log(2.0))
    back = 0.5 * (3.0 - 1.0 - math.log(2.0))
    np.testing.assert_allclose(found, [[0.0, there], [back, 0.0]], atol=1e-6)
    overlaps = log_overlaps(*gaussians([[0.0], [1.0]], [[1.0], [2.0]])).numpy()
    across = -0.5 * (math.log(6.0 * math.pi) + 1.0 / 3.0)  # log N(0; 1, 3)
    own = [-0.5 * math.log(4.0 * math.pi), -0.5 * math.log(8.0 * math.pi)]
    np.testing.assert_allclose(overlaps, [[own[0], across], [across, own[1]]], atol=1e-6)


@cases(("apart", "variational", "product"), (1.0, 0.2190702, 0.0), (3.0, 0.6820994, 0.4395142))
def test_two_actions_have_the_influence_of_how_far_they_lead_apart(apart, variational, product):
    # log 2 - log(1 + e^(-apart^2 / 2)); log 2 - (1 + log 2 pi) / 2 + (log 4 pi) / 2
    # - log(1 + e^(-apart^2 / 4)), where that is above 0
    found = influence_of_actions(*gaussians([[0.0], [apart]], [[1.0], [1.0]]))
    np.testing.assert_allclose(found, [0.5 * (variational + product)] * 2, atol=1e-6)


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


def test_neither_the_order_of_actions_nor_the_unit_of_what_is_foretold_matters():
    mean, variance = drawn(20, 8, 3)
    order = np.random.default_rng(1).permutation(8)
    shuffled = [tf.gather(each, order, axis=1) for each in (mean, variance)]
    np.testing.assert_allclose(influence(*shuffled), influence(mean, variance), atol=1e-6)
    np.testing.assert_allclose(
        influence_of_actions(*shuffled),
        tf.gather(influence_of_actions(mean, variance), order, axis=1),
        atol=1e-5,
    )
    found = influence(50.0 * mean, 2500.0 * variance)
    np.testing.assert_allclose(found, influence(mean, variance), atol=1e-4)


def test_variances_begin_at_1_and_keep_within_their_bounds():
    found = variance_of(tf.constant([0.0, -60.0, 1e4, 2.0])).numpy()
    expected = [1.0, 1e-8, 200.0, math.log(1.0 + (math.e - 1.0) * math.e**2)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = variance_of(tf.constant([0.0, -60.0, 1e4]), floor=0.25).numpy()
    np.testing.assert_allclose(found, [1.25, 0.25, 200.0], rtol=1e-6)
