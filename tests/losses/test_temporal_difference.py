import math

import numpy as np
import tensorflow as tf

from music_tf.losses.temporal_difference import (
    critic_loss,
    half_mean_critic_loss,
    td_target,
    value_target,
)
from tests.kit.batches import gradients

FREE = (-math.inf, math.inf)


def target(reward, discount, next_q, bounds=FREE):
    values = (tf.constant(value, tf.float32) for value in (reward, discount, next_q))
    return td_target(*values, bounds).numpy()


def test_the_target_is_reward_and_discounted_lowest_value_in_bounds_without_gradient():
    # -1 + 0.98 * min(-3, -5) = -5.9; 0 + 0.98 * min(-1, 2) = -0.98
    found = target([[-1.0, 0.0]], [[0.98, 0.98]], [[[-3.0, -1.0]], [[-5.0, 2.0]]])
    np.testing.assert_allclose(found, [[-5.9, -0.98]], rtol=1e-6)
    found = target([[-1.0, -1.0]], [[0.0, 0.5]], [[[-4.0, -4.0]]])
    np.testing.assert_allclose(found, [[-1.0, -3.0]])
    # -1 + 0.5 * (-100) = -51 -> -50; -1 + 0.5 * 1.5 = -0.25 stays; 1 + 0.5 * 2 = 2 -> 0
    found = target([[-1.0, -1.0, 1.0]], [[0.5] * 3], [[[-100.0, 1.5, 2.0]]], (-50.0, 0.0))
    np.testing.assert_allclose(found, [[-50.0, -0.25, 0.0]])
    inputs = (tf.ones(shape) for shape in ([1, 2], [1, 2], [2, 1, 2]))
    assert gradients(lambda *given: td_target(*given, FREE), *inputs)[1] == [None] * 3


def test_the_critic_loss_sums_members_or_averages_half_of_them_over_the_batch():
    # worker 0: ((1-0)^2 + (2-4)^2) / 2 + ((1-1)^2 + (2-1)^2) / 2 = 2.5 + 0.5 = 3
    # worker 1: ((3-0)^2 + (0-0)^2) / 2 + ((3-2)^2 + (0-1)^2) / 2 = 4.5 + 1 = 5.5
    q = [[[0.0, 4.0], [0.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]]
    # without the second step of worker 0: (1-0)^2 / 2 + (1-1)^2 / 2 = 0.5
    q, y = tf.constant(q), tf.constant([[1.0, 2.0], [3.0, 0.0]])
    counted = tf.constant([[1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(critic_loss(q, y), [3.0, 5.5])
    np.testing.assert_allclose(critic_loss(q, y, counted), [0.5, 5.5])
    # half of the mean: 3 / (2 * 2), 0.5 / (2 * 2), 5.5 / (2 * 2)
    np.testing.assert_allclose(half_mean_critic_loss(q, y), [0.75, 1.375])
    np.testing.assert_allclose(half_mean_critic_loss(q, y, counted), [0.125, 1.375])


def test_the_soft_target_of_sac_and_the_value_of_a_state_count_entropy():
    # 0.7 + 0.99 (min(3, 2.5) + 0.1 * 1.3); 0.8 + 0.99 (min(5, 4.6) + 0.01 * 3)
    q, log_policy = np.float32([[[3.0, 5.0]], [[2.5, 4.6]]]), np.float32([[-1.3, -3.0]])
    found = target([[0.7, 0.8]], [[0.99, 0.99]], q - np.float32([0.1, 0.01]) * log_policy)
    np.testing.assert_allclose(found, [[3.3037, 5.3837]], rtol=1e-6)
    # min(3, 2.5) + 0.1 * 1.3 = 2.63; min(-1, 2) - 0.1 * 2 = -1.2
    found, slopes = gradients(value_target, *([[[3.0, -1.0]], [[2.5, 2.0]]], [[-1.3, 2.0]], 0.1))
    np.testing.assert_allclose(found, [[2.63, -1.2]], rtol=1e-6)
    assert slopes == [None] * 3
