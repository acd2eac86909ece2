import numpy as np
import pytest

from music_tf.measures.skills import (
    diversity_returns,
    end_distances,
    kept_steps,
    named_shares,
)

LOGITS = np.array([2.0, 0.0, -1.0])
LOG_Q = LOGITS - np.log(np.exp(LOGITS).sum())
"""(-0.169846, -2.169846, -3.169846): of three skills the first is by far the likeliest."""
TWO = np.stack([[LOG_Q, LOG_Q], [LOG_Q, LOG_Q[::-1]]])  # [E, T, K]


def test_a_diversity_return_subtracts_the_prior_and_ends_with_its_episode():
    one, other = 0.928766, -2.071234
    for skill, length, expected in (
        ((0, 0), (2, 2), (2 * one, one + other)),
        ((0, 2), (1, 2), (one, other + one)),
        ((2, 0), (2, 1), (2 * other, one)),
    ):
        found = diversity_returns(TWO, np.array(skill), np.array(length))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_no_step_is_worth_more_than_the_logarithm_of_the_number_of_skills():
    certain = np.log(np.array([[[1.0, 1e-30, 1e-30, 1e-30]] * 5]))
    assert diversity_returns(certain, np.array([0]), np.array([5])) == pytest.approx(5 * np.log(4))
    guess = np.full([1, 5, 4], -np.log(4))
    assert diversity_returns(guess, np.array([3]), np.array([5])) == pytest.approx(0.0)


def test_steps_count_until_the_first_end():
    expected = [[True, False, False], [True, True, True]]
    assert kept_steps(np.array([1, 3]), 3).tolist() == expected


def test_a_row_of_the_matrix_says_how_often_each_skill_was_named():
    assert named_shares(TWO, np.array([2, 2])).tolist() == [0.75, 0.0, 0.25]
    assert named_shares(TWO, np.array([2, 1])).tolist() == [1.0, 0.0, 0.0]


def test_ends_are_apart_by_the_distance_of_their_means():
    ends = np.array([[[0.0, 0.0], [2.0, 0.0]], [[1.0, 4.0], [1.0, 4.0]]])
    assert end_distances(ends).tolist() == [[0.0, 4.0], [4.0, 0.0]]
