import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.distance import (
    controllability_log_weights,
    direction,
    embedding_loss,
    gaussian_loss,
    inner_product_reward,
    slack,
    squared_controllability_distance,
)
from tests.kit.cases import cases

MEAN, LOG_DEVIATION, CHANGE = (
    tf.constant(values) for values in ([0.0, 0.1, -0.2], [-1.0, 0.0, 0.5], [0.1, 0.3, -0.1])
)
SQUARED_DISTANCE = 0.0280807
"""(5.294490 x 0.01 + 0.716531 x 0.04 + 0.263597 x 0.01) / 3."""


def test_gaussian_losses_have_their_known_values():
    # errors over deviations: .1 e = .271828, .2, .1 / e^.5 = .060653; squares add up to .117570
    released = gaussian_loss(MEAN, LOG_DEVIATION, CHANGE, released=True)
    assert float(released) == pytest.approx(0.117570 + 1.0 / math.e + 1.0 + math.e**0.5, abs=1e-5)
    assert float(released) == pytest.approx(3.134170, abs=1e-5)
    likelihood = gaussian_loss(MEAN, LOG_DEVIATION, CHANGE, released=False)
    # half of the squares, log-deviations of -.5 in all, and 1.5 log 2 pi
    expected = 0.058785 - 0.5 + 1.5 * math.log(2.0 * math.pi)
    assert float(likelihood) == pytest.approx(expected, abs=1e-5)


def test_weights_have_known_values_and_a_column_that_never_changes_has_nearly_all():
    weights = tf.exp(controllability_log_weights(LOG_DEVIATION))
    np.testing.assert_allclose(weights, [5.294490, 0.716531, 0.263597], atol=1e-5)
    found = squared_controllability_distance(MEAN, LOG_DEVIATION, CHANGE)
    assert float(found) == pytest.approx(SQUARED_DISTANCE, abs=1e-6)
    found = controllability_log_weights(tf.constant([-13.8155, -3.0, -2.0, -4.0]))
    np.testing.assert_allclose(found, [16.223, -5.408, -7.408, -3.408], atol=1e-3)


@cases(
    ("step", "reward", "left", "objective"),
    # .03 x .5 + .04; mean square .00125, slack .0268307, of which 1e-6 counts at 3,000
    ((0.03, -0.04), 0.055, 1e-6, 0.058),
    # .3 x .5 + .2; mean square .065
    ((0.3, -0.2), 0.35, SQUARED_DISTANCE - 0.065, 0.35 - 3000.0 * 0.0369193),
)
def test_what_a_step_is_worth_under_a_density_distance(step, reward, left, objective):
    step, towards = tf.constant(step), tf.constant([0.5, -1.0])
    paid = inner_product_reward(step, towards)
    assert float(paid) == pytest.approx(reward, abs=1e-6)
    found = slack(step, tf.constant(SQUARED_DISTANCE), mean=True, most=1e-6)
    assert float(found) == pytest.approx(left, abs=1e-6)
    loss = embedding_loss(paid, found, tf.constant(math.log(3000.0)))
    assert float(loss) == pytest.approx(-objective + math.log(3000.0) * left, rel=1e-4)


def test_a_skill_alone_has_no_direction():
    with pytest.raises(ValueError, match="one skill alone"):
        direction(tf.ones([3, 1]), one_hot=True)


def test_the_penalty_pulls_at_steps_that_are_too_long_alone():
    steps = tf.Variable([[0.1, 0.2], [2.0, 1.0]])
    with tf.GradientTape() as tape:
        left = slack(steps, tf.ones([2]), mean=True, most=1e-3)
        loss = tf.reduce_sum(embedding_loss(tf.zeros([2]), left, tf.constant(math.log(7.0))))
    # lambda 2 / D dphi = 7 dphi where the slack is below epsilon
    np.testing.assert_allclose(tape.gradient(loss, steps), [[0.0, 0.0], [14.0, 7.0]], rtol=1e-5)


@pytest.mark.parametrize("dual", [0.01, 30.0, 3000.0])
def test_the_gradient_of_the_log_price_is_the_mean_slack_whatever_the_price(dual):
    log_dual = tf.Variable(math.log(dual))
    left = tf.constant([0.001, -0.4, -0.2])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(embedding_loss(tf.ones([3]), left, log_dual))
    assert float(tape.gradient(loss, log_dual)) == pytest.approx(-0.1996667, abs=1e-6)


def test_the_price_at_its_floor_feels_violations_alone():
    log_dual, left = tf.Variable(math.log(0.5)), tf.constant([0.001, -0.3])
    with tf.GradientTape() as tape:
        losses = embedding_loss(tf.zeros([2]), left, log_dual, log_floor=math.log(2.0))
    # the price that counts is 2
    np.testing.assert_allclose(losses, [-0.002, 0.6 - math.log(0.5) * 0.3], rtol=1e-5)
    assert float(tape.gradient(losses, log_dual)) == pytest.approx(-0.3)
