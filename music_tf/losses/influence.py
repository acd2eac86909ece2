"""Causal action influence (Seitzer, Schölkopf and Martius, 2021, arXiv:2106.03443).

The influence in a state is the mutual information between a random action and the next state, under
a Gaussian model of the next state for each action.
"""

import math

import tensorflow as tf

from music_tf.config.agents import ONE_OF_SOFTPLUS, OUTCOME_VARIANCES


def variance_of(outputs: tf.Tensor, floor: float = 0.0) -> tf.Tensor:
    r"""Maps outputs of the model to variances of the same shape; 0 is mapped to 1 + floor.

    .. math:: \operatorname{clip}(\log(1 + e^{w + \log(e - 1)}) + f + 10^{-8}, 10^{-8}, 200)

    The floor f is added, so that its gradient never vanishes; the authors' code has none.
    """
    variance = tf.nn.softplus(outputs + ONE_OF_SOFTPLUS) + (floor + OUTCOME_VARIANCES[0])
    return tf.clip_by_value(variance, *OUTCOME_VARIANCES)


def divergences(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the KL divergences between K Gaussians, [..., K, K].

    .. math:: KL(p_i \| p_j) = \frac{1}{2} \sum_d \frac{v_i + (m_i - m_j)^2}{v_j} - 1
        + \log v_j - \log v_i

    Args:
        mean: m, [..., K, n].
        variance: v, [..., K, n].
    """
    of_i, of_j = variance[..., :, None, :], variance[..., None, :, :]
    squares = tf.square(mean[..., :, None, :] - mean[..., None, :, :])
    each = (of_i + squares) / of_j - 1.0 + tf.math.log(of_j) - tf.math.log(of_i)
    return 0.5 * tf.reduce_sum(each, axis=-1)


def log_overlaps(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the log of the integral of the product of each two of K Gaussians, [..., K, K].

    .. math:: \log \int p_i p_j = \log N(m_i; m_j, v_i + v_j)

    Args:
        mean: m, [..., K, n].
        variance: v, [..., K, n].
    """
    both = variance[..., :, None, :] + variance[..., None, :, :]
    squares = tf.square(mean[..., :, None, :] - mean[..., None, :, :])
    return -0.5 * tf.reduce_sum(tf.math.log(2.0 * math.pi * both) + squares / both, axis=-1)


def influence_of_actions(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the divergence of the prediction for each of K actions from their mixture, [..., K].

    .. math:: KL\left(p_i \Big\| \frac{1}{K} \sum_j p_j\right) \approx \frac{1}{2} \left(
        \log K - \log \sum_j e^{-KL(p_i \| p_j)}
        + \max\left(0, \log K - H(p_i) - \log \sum_j \int p_i p_j\right) \right)

    The mean of the variational and the product approximation (Durrieu et al., 2012), as in the
    authors' code.

    Args:
        mean: m, [..., K, n].
        variance: v, [..., K, n].

    Returns:
        Nats, from 0, where all actions have the same effect, to log K.
    """
    mean.shape.assert_is_compatible_with(variance.shape)
    most = math.log(mean.shape[-2])
    variational = most - tf.reduce_logsumexp(-divergences(mean, variance), axis=-1)
    entropy = 0.5 * tf.reduce_sum(tf.math.log(2.0 * math.pi * math.e * variance), axis=-1)
    product = most - entropy - tf.reduce_logsumexp(log_overlaps(mean, variance), axis=-1)
    return 0.5 * (variational + tf.maximum(product, 0.0))


def influence(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the causal influence of the action, a mean over K random actions, [...].

    .. math:: C(s) = \frac{1}{K} \sum_i KL\left(p_i \Big\| \frac{1}{K} \sum_j p_j\right)

    Equation 3 of the paper, in nats; arguments as for `influence_of_actions`.
    """
    return tf.reduce_mean(influence_of_actions(mean, variance), axis=-1)
