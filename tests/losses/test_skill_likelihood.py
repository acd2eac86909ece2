import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.discriminator import gaussian_log_likelihood, skill_hits, skill_log_likelihood


def test_it_is_the_log_softmax_at_the_active_skill_for_a_guess_and_a_single_skill_too():
    # softmax of (log 1, log 2, log 5) = (1/8, 2/8, 5/8)
    found = skill_log_likelihood(tf.math.log([[1.0, 2.0, 5.0]] * 3), tf.eye(3))
    np.testing.assert_allclose(found, np.log([1 / 8, 2 / 8, 5 / 8]), rtol=1e-6)
    found = skill_log_likelihood(tf.zeros([1, 5]), tf.eye(5)[:1])
    assert found.numpy() == pytest.approx(-math.log(5.0))
    assert skill_log_likelihood(tf.constant([[3.7]]), tf.ones([1, 1])).numpy() == 0.0


def test_a_hit_is_where_the_most_likely_skill_is_the_active_one():
    logits = tf.constant([[0.1, 0.3, 0.2], [5.0, -1.0, 0.0]])
    assert skill_hits(logits, tf.eye(3)[1:]).numpy().tolist() == [1.0, 0.0]


def test_the_log_deviation_of_a_continuous_skill_lies_between_minus_five_and_two():
    outputs = tf.constant([[0.3, -9.0], [0.3, 0.0], [0.3, 9.0]])
    at_the_mean = gaussian_log_likelihood(outputs, tf.fill([3, 1], 0.3))
    log_deviations = -at_the_mean - 0.5 * math.log(2.0 * math.pi)
    np.testing.assert_allclose(log_deviations, [-5.0, -1.5, 2.0], atol=1e-5)
