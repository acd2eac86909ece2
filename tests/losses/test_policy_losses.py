import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.policy import (
    deterministic_policy_loss,
    entropy_loss,
    entropy_reward,
    temperature_loss,
)
from music_tf.losses.temporal_difference import critic_loss, td_target
from tests.kit.batches import gradients


def test_the_policy_maximises_value_and_pays_for_the_mean_square_of_actions():
    # -(1 + 2) / 2 + 0.5 * (0.1^2 + 0.3^2 + 0.5^2 + 0.7^2) / 4 = -1.5 + 0.5 * 0.84 / 4 = -1.395
    action = tf.constant([[[0.1, -0.3], [0.5, 0.7]]])
    found = deterministic_policy_loss(tf.constant([[1.0, 2.0]]), action, 0.5)
    np.testing.assert_allclose(found, [-1.395], rtol=1e-6)
    # 2 * (0.5^2 + 0.1^2) / 2 = 0.26 in each worker
    action = tf.broadcast_to(tf.constant([0.5, -0.1]), [3, 4, 2])
    found = deterministic_policy_loss(tf.zeros([3, 4]), action, 2.0)
    np.testing.assert_allclose(found, [0.26] * 3, rtol=1e-6)


def test_the_entropy_loss_is_the_mean_log_density_times_the_temperature():
    # 0.2 * (1 - 3) / 2 = -0.2
    found = entropy_loss(tf.constant([[1.0, -3.0]]), tf.constant(0.2))
    np.testing.assert_allclose(found, [-0.2], rtol=1e-6)
    _, (on_density, on_temperature) = gradients(entropy_loss, [[1.0, -3.0]], 0.2)
    np.testing.assert_allclose(on_density, [[0.1, 0.1]], rtol=1e-6)
    assert on_temperature is None


@pytest.mark.parametrize(("log_density", "direction"), [(3.0, 1.0), (1.0, -1.0)])
def test_the_temperature_rises_where_entropy_is_below_its_target(log_density, direction):
    # target entropy -2: at log pi = 3 the entropy is -3, too low, so alpha has to rise;
    # at log pi = 1 it is -1, too high. dL/dlog alpha = -alpha (log pi + target).
    def loss(log_temperature, density):
        return temperature_loss(log_temperature, density, -2.0)

    _, (on_temperature, on_density) = gradients(loss, math.log(0.5), [[log_density, log_density]])
    np.testing.assert_allclose(on_temperature, -0.5 * (log_density - 2.0), rtol=1e-6)
    assert np.sign(-on_temperature) == direction
    assert on_density is None


def test_the_entropy_reward_is_scaled_and_clipped_and_its_mean_a_constant_of_each_worker():
    # -0.02 * (10, -10, 80) = (-0.2, 0.2, -1.6), clipped to [-1, 0]: it never pays
    found = entropy_reward(tf.constant([[10.0, -10.0, 80.0]]), 0.02, (-1.0, 0.0), batch_mean=False)
    np.testing.assert_allclose(found, [[-0.2, 0.0, -1.0]], rtol=1e-6)
    # worker 0: (-0.2 + 0 - 1) / 3 = -0.4; worker 1: (-0.1 - 0.1 - 0.1) / 3 = -0.1
    log_density = tf.constant([[10.0, -10.0, 80.0], [5.0, 5.0, 5.0]])
    found = entropy_reward(log_density, 0.02, (-1.0, 0.0), batch_mean=True)
    np.testing.assert_allclose(found, [[-0.4] * 3, [-0.1] * 3], rtol=1e-6)


@pytest.mark.parametrize("batch_mean", [True, False])
def test_no_gradient_passes_through_the_entropy_reward(batch_mean):
    def reward(log_density):
        return entropy_reward(log_density, 0.02, (-1.0, 0.0), batch_mean)

    assert gradients(reward, [[10.0, -10.0, 80.0]])[1] == [None]


def test_the_batch_mean_has_the_gradient_of_the_released_matrix_and_differs_by_a_variance():
    q, rest, log_density = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    log_density = 20.0 * (log_density - log_density.mean())
    rho = np.clip(-0.02 * log_density, -1.0, 0.0)
    assert 0.0 < np.mean(rho == 0.0) < 1.0

    def matrix_loss(q):
        return tf.reduce_mean(tf.square(rest[:, None] + rho[None, :] - q[:, None]))

    def mean_loss(q):
        reward = entropy_reward(log_density[None], 0.02, (-1.0, 0.0), batch_mean=True)
        free = (-math.inf, math.inf)
        target = td_target(rest[None] + reward, tf.zeros([1, 6]), tf.zeros([1, 1, 6]), free)
        return critic_loss(q[None, None], target)

    (mean, (on_mean,)), (matrix, (on_matrix,)) = (gradients(f, q) for f in (mean_loss, matrix_loss))
    np.testing.assert_allclose(on_mean, on_matrix, rtol=1e-5)
    assert float(matrix) - float(mean[0]) == pytest.approx(np.var(rho), rel=1e-4)
