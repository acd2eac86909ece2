import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.mutual_information import donsker_varadhan, pair_bound


def bound(joint, marginal):
    joint, marginal = np.float32(joint), np.float32(marginal)
    return donsker_varadhan(*map(tf.constant, (joint, marginal, np.ones_like(joint)))).numpy()


def test_each_trajectory_has_the_mean_score_less_the_logarithm_of_the_mean_exponential():
    # (0.2 + 0.4) / 2 - log((e^0.1 + e^-0.3) / 2) = 0.3 - log((1.1051709 + 0.7408182) / 2)
    #                                             = 0.3 - log(0.9229946) = 0.3 + 0.0801319
    assert bound([0.2, 0.4], [0.1, -0.3]) == pytest.approx(0.3801319, abs=1e-6)
    # 0.5 - log(e^0.5) = 0 and 0.5 - log(e^-0.5) = 1
    found = bound([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [-0.5, -0.5]])
    np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-6)


def test_surroundings_that_rest_are_never_paid_whatever_is_rounded():
    # y' = y: m = -log cosh((T - T') / 2), about -1e-4 to -1e-8 here, where floats end at 6e-8
    ends = np.random.default_rng(0).uniform(-0.9, 0.9, 1000).astype(np.float32)
    moved = ends + np.random.default_rng(1).uniform(-0.02, 0.02, 1000).astype(np.float32)
    scores = np.broadcast_to(np.stack([ends, moved])[:, None, None], (2, 2, 1, 1000))
    found = pair_bound(tf.constant(scores), tf.constant([True]), all_pairs=False)[0]
    exact = -np.log(np.cosh(0.5 * (np.float64(ends) - np.float64(moved))))
    assert np.max(found) <= 0.0
    np.testing.assert_allclose(found, exact, rtol=1e-2, atol=2e-9)
