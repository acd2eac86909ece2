"""Losses of discrete soft actor-critic: expectations are exact sums over choices."""

import tensorflow as tf


def soft_value(q: tf.Tensor, log_policy: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    r"""The value of a state under a categorical policy (Christodoulou, 2019, arXiv:1910.07207).

    .. math:: V(s) = \sum_a \pi(a | s) (\min_i Q_i(s, a) - \alpha \log \pi(a | s))

    Args:
        q: Values of all choices, shape [C, W, B, K].
        log_policy: log pi of all choices, shape [W, B, K].
        temperature: alpha, scalar.

    Returns:
        V, shape [W, B].
    """
    tf.debugging.assert_shapes([(q, "CWBK"), (log_policy, "WBK"), (temperature, ())])
    worth = tf.reduce_min(q, axis=0) - temperature * log_policy
    return tf.reduce_sum(tf.exp(log_policy) * worth, axis=-1)


def choice_loss(q: tf.Tensor, log_policy: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    r"""The policy loss of discrete soft actor-critic (arXiv:1910.07207).

    .. math:: L_\pi = \frac{1}{B} \sum_b \sum_a
        \pi(a | s_b) (\alpha \log \pi(a | s_b) - \min_i Q_i(s_b, a))

    Args:
        q: Values of all choices, shape [C, W, B, K]; no gradient reaches them.
        log_policy: log pi of all choices, shape [W, B, K].
        temperature: alpha, scalar; no gradient reaches it.

    Returns:
        One loss a worker, shape [W].
    """
    worth = soft_value(tf.stop_gradient(q), log_policy, tf.stop_gradient(temperature))
    return -tf.reduce_mean(worth, axis=-1)


def choice_entropy(log_policy: tf.Tensor) -> tf.Tensor:
    """Returns the entropy of a categorical policy in nats, [W, B], of log pi [W, B, K]."""
    return -tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=-1)
