"""Policy losses: deterministic policy gradient and soft actor-critic."""

import tensorflow as tf


def deterministic_policy_loss(q: tf.Tensor, action: tf.Tensor, action_l2: float) -> tf.Tensor:
    r"""Deterministic policy gradient (Silver et al., 2014) with a penalty on large actions.

    .. math:: L_\pi = -\frac{1}{B} \sum_b Q(s_b, \pi(s_b))
        + \lambda \frac{1}{BA} \sum_{b,i} \pi_i(s_b)^2

    Args:
        q: Value of the policy's own actions, differentiable in them, shape [W, B].
        action: Those actions, each component in [-1, 1], shape [W, B, A].
        action_l2: lambda, at least 0.

    Returns:
        One loss a worker, shape [W].
    """
    tf.debugging.assert_shapes([(q, "WB"), (action, "WBA")])
    penalty = action_l2 * tf.reduce_mean(tf.square(action), axis=[1, 2])
    return penalty - tf.reduce_mean(q, axis=-1)


def entropy_loss(log_density: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    r"""The entropy part of the policy loss of SAC (Haarnoja et al., 2018, arXiv:1801.01290).

    .. math:: \frac{1}{B} \sum_b \alpha \log \pi(a_b | s_b)

    Args:
        log_density: log pi of reparameterised actions, shape [W, B].
        temperature: alpha, scalar; no gradient reaches it.

    Returns:
        One loss a worker, shape [W].
    """
    tf.debugging.assert_shapes([(log_density, "WB"), (temperature, ())])
    return tf.reduce_mean(tf.stop_gradient(temperature) * log_density, axis=-1)


def temperature_loss(
    log_temperature: tf.Tensor, log_density: tf.Tensor, target_entropy: float
) -> tf.Tensor:
    r"""Tunes the temperature of SAC towards an entropy (arXiv:1812.05905, section 5).

    .. math:: L_\alpha = -\frac{1}{B} \sum_b \alpha (\log \pi(a_b | s_b) + \bar H)

    Args:
        log_temperature: log alpha, scalar.
        log_density: log pi, shape [W, B]; no gradient reaches the policy.
        target_entropy: H-bar in nats.

    Returns:
        One loss a worker, shape [W].
    """
    tf.debugging.assert_shapes([(log_temperature, ()), (log_density, "WB")])
    gap = tf.stop_gradient(tf.reduce_mean(log_density, axis=-1) + target_entropy)
    return -tf.exp(log_temperature) * gap


def entropy_reward(
    log_density: tf.Tensor, scale: float, clip: tuple[float, float], batch_mean: bool
) -> tf.Tensor:
    r"""The clipped entropy reward of the MUSIC release, added to the reward at o_t.

    .. math:: \rho = \operatorname{clip}(-c \log \pi(a_t | o_t), lo, hi)

    The release subtracts a vector [B] from a column [B, 1]. The [B, B] target that results has the
    gradient of a target with the *mean* of rho over the batch: a constant, which cannot tell one
    action from another. `batch_mean` reproduces that without the [B, B] matrix; the loss value is
    lower than the release's by exactly the variance of rho.

    Args:
        log_density: log pi of freshly sampled actions, shape [W, B].
        scale: c, at least 0.
        clip: (lo, hi).
        batch_mean: Replaces each value by its mean over the worker's batch.

    Returns:
        rho without gradient, shape [W, B].
    """
    tf.debugging.assert_shapes([(log_density, "WB")])
    reward = tf.stop_gradient(tf.clip_by_value(-scale * log_density, clip[0], clip[1]))
    if batch_mean:
        reward = tf.reduce_mean(reward, axis=-1, keepdims=True) + tf.zeros_like(reward)
    return reward
