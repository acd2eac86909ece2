import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from music_tf.losses.mutual_information import donsker_varadhan, pair_bound
from tests.kit.batches import gradients

SCORES = st.floats(-1.0, 1.0, width=32)


def bound(joint, marginal, valid=None):
    joint, marginal = np.float32(joint), np.float32(marginal)
    valid = np.ones_like(joint) if valid is None else np.float32(valid)
    return donsker_varadhan(*map(tf.constant, (joint, marginal, valid))).numpy()


def pairs(scores, negatives="swap", swapped=True):
    """Scores of one transition, [[T00, T01], [T10, T11]]."""
    table = tf.reshape(tf.constant(scores, tf.float32), [2, 2, 1, 1])
    return float(pair_bound(table, tf.constant([swapped]), negatives == "all_pairs")[0, 0])


def test_each_trajectory_has_the_mean_score_less_the_logarithm_of_the_mean_exponential():
    # (0.2 + 0.4) / 2 - log((e^0.1 + e^-0.3) / 2) = 0.3 - log((1.1051709 + 0.7408182) / 2)
    #                                             = 0.3 - log(0.9229946) = 0.3 + 0.0801319
    assert bound([0.2, 0.4], [0.1, -0.3]) == pytest.approx(0.3801319, abs=1e-6)
    # 0.5 - log(e^0.5) = 0 and 0.5 - log(e^-0.5) = 1
    found = bound([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [-0.5, -0.5]])
    np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-6)


def test_padding_counts_in_neither_average():
    valid = [1.0, 1.0, 0.0]
    expected = bound([0.2, 0.4], [0.1, -0.3])
    for padding in (-1.0, 0.0, 1.0):
        found = bound([0.2, 0.4, padding], [0.1, -0.3, -padding], valid)
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.thorough
@given(arrays(np.float32, 7, elements=SCORES))
def test_scores_that_are_only_permuted_bound_nothing_above_zero(scores):
    assert bound(scores, scores[::-1]) <= 1e-6


@pytest.mark.thorough
@given(arrays(np.float32, (2, 5), elements=SCORES))
def test_the_bound_lies_between_minus_two_and_two(scores):
    assert -2.0 - 1e-6 <= bound(scores[0], scores[1]) <= 2.0 + 1e-6


def test_its_gradient_is_one_nth_on_pairs_drawn_together_and_softmax_on_pairs_drawn_apart():
    scores = ([0.2, 0.4, -0.1], [0.1, -0.3, 0.8], [1.0, 1.0, 1.0])
    _, (on_joint, on_marginal, _) = gradients(donsker_varadhan, *scores)
    np.testing.assert_allclose(on_joint, [1 / 3] * 3, rtol=1e-6)
    weights = [math.exp(score) for score in (0.1, -0.3, 0.8)]
    np.testing.assert_allclose(on_marginal, [-w / sum(weights) for w in weights], rtol=1e-5)


def test_swapped_pairs_are_negatives_equal_ones_never_pay_and_all_pairs_average_over_four():
    # (0.6 + 0.2) / 2 - log((e^0.1 + e^-0.5) / 2) = 0.4 - log((1.1051709 + 0.6065307) / 2)
    #                                             = 0.4 - log(0.8558508) = 0.4 + 0.1556592
    assert pairs([[0.6, 0.1], [-0.5, 0.2]]) == pytest.approx(0.5556592, abs=1e-6)
    # (0.6 + 0.2) / 2 - log((e^0.6 + e^0.2) / 2) = 0.4 - log((1.8221188 + 1.2214028) / 2)
    #                                            = 0.4 - log(1.5217608) = 0.4 - 0.4198679
    assert pairs([[0.6, 0.1], [-0.5, 0.2]], swapped=False) == pytest.approx(-0.0198679, abs=1e-6)
    # 0.4 - log((1.8221188 + 1.1051709 + 0.6065307 + 1.2214028) / 4) = 0.4 - log(1.1888058)
    #                                                                 = 0.4 - 0.1729492
    for swapped in (True, False):
        found = pairs([[0.6, 0.1], [-0.5, 0.2]], "all_pairs", swapped)
        assert found == pytest.approx(0.2270508, abs=1e-6)


@settings(max_examples=50)
@given(arrays(np.float32, (2, 2), elements=SCORES))
def test_relations_between_the_three_forms_hold_for_any_scores(scores):
    identity, swap = pairs(scores, swapped=False), pairs(scores)
    together = pairs(scores, "all_pairs")
    half = 0.5 * (float(scores[0, 0]) + float(scores[1, 1]))
    expected = 0.5 * (math.exp(half - identity) + math.exp(half - swap))
    assert math.exp(half - together) == pytest.approx(expected, rel=1e-5)
    assert identity <= 1e-6


@pytest.mark.parametrize("negatives", ["swap", "all_pairs"])
def test_the_order_of_the_two_states_does_not_matter(negatives):
    for scores in itertools.permutations([0.6, 0.1, -0.5, 0.2]):
        table = np.reshape(scores, (2, 2))
        for swapped in (True, False):
            there, back = (pairs(t, negatives, swapped) for t in (table, table[::-1, ::-1]))
            assert there == pytest.approx(back, abs=1e-6)


def test_surroundings_that_rest_are_never_paid_whatever_is_rounded():
    # y' = y: m = -log cosh((T - T') / 2), about -1e-4 to -1e-8 here, where floats end at 6e-8
    ends = np.random.default_rng(0).uniform(-0.9, 0.9, 1000).astype(np.float32)
    moved = ends + np.random.default_rng(1).uniform(-0.02, 0.02, 1000).astype(np.float32)
    scores = np.broadcast_to(np.stack([ends, moved])[:, None, None], (2, 2, 1, 1000))
    found = pair_bound(tf.constant(scores), tf.constant([True]), all_pairs=False)[0]
    exact = -np.log(np.cosh(0.5 * (np.float64(ends) - np.float64(moved))))
    assert np.max(found) <= 0.0
    np.testing.assert_allclose(found, exact, rtol=1e-2, atol=2e-9)


def test_a_coin_holds_for_the_whole_batch_of_a_worker():
    scores = tf.constant(np.random.default_rng(0).uniform(-1, 1, (2, 2, 2, 5)), tf.float32)
    both = [
        pair_bound(scores, tf.constant([coin] * 2), all_pairs=False).numpy()
        for coin in (False, True)
    ]
    mixed = pair_bound(scores, tf.constant([False, True]), all_pairs=False).numpy()
    np.testing.assert_array_equal(mixed, [both[0][0], both[1][1]])
    assert (both[0] != both[1]).all()
