"""The posterior of a task's latent, a product of Gaussian factors, and its KL divergence.

PEARL: efficient off-policy meta-reinforcement learning (arXiv:1903.08254, section 4.1), with
diagonal factors. Factors that each observe one direction give a full covariance.
"""

import tensorflow as tf

from music_tf.config.agents import LEAST_PRECISION, LEAST_VARIANCE


def product_of_gaussians(mean: tf.Tensor, raw_variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns mean and variance of the product of N factors, [..., L] each.

    .. math:: \sigma^2 = \Bigl(\sum_n \sigma_n^{-2}\Bigr)^{-1}, \quad
        \mu = \sigma^2 \sum_n \sigma_n^{-2} \mu_n, \quad \sigma_n^2 = \log(1 + e^{w_n})

    The prior is no factor: it enters through `kl_to_prior` alone, as in the authors' code.

    Args:
        mean: mu of each factor, shape [..., N, L].
        raw_variance: w, shape [..., N, L]; the variance is at least LEAST_VARIANCE.
    """
    precision = 1.0 / tf.maximum(tf.nn.softplus(raw_variance), LEAST_VARIANCE)
    variance = 1.0 / tf.reduce_sum(precision, axis=-2)
    return variance * tf.reduce_sum(precision * mean, axis=-2), variance


def kl_to_prior(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the KL divergence of a diagonal Gaussian from N(0, I) in nats, [...].

    .. math:: KL(N(\mu, \sigma^2) || N(0, 1)) = \frac{1}{2} \sum_l
        \sigma_l^2 + \mu_l^2 - 1 - \log \sigma_l^2
    """
    each = variance + tf.square(mean) - 1.0 - tf.math.log(variance)
    return 0.5 * tf.reduce_sum(each, axis=-1)


def product_of_observations(direction: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns mean [..., L] and root of the precision [..., L, L] after N observations.

    Each observation is the product of the latent with a direction, plus unit noise. With the prior
    N(0, I) this is Bayesian linear regression:

    .. math:: \Lambda = I + \sum_n a_n a_n^T = C C^T, \quad
        \mu = \Lambda^{-1} \sum_n a_n b_n, \quad b_n = a_n^T z + \epsilon_n

    The longer a_n, the more precise the observation. C is lower triangular.

    Args:
        direction: a of each observation, shape [..., N, L].
        value: b of each, shape [..., N].
    """
    unit = tf.eye(direction.shape[-1])
    precision = unit + tf.matmul(direction, direction, transpose_a=True)
    # single precision loses the prior, and positive definiteness, beside very long directions
    floor = tf.nn.relu(LEAST_PRECISION * tf.linalg.trace(precision) - 1.0)
    precision += tf.stop_gradient(floor)[..., None, None] * unit
    root = tf.linalg.cholesky(precision)
    total = tf.reduce_sum(direction * value[..., None], axis=-2)
    return tf.linalg.cholesky_solve(root, total[..., None])[..., 0], root


def drawn_from_root(mean: tf.Tensor, root: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    r"""Draws from a Gaussian with precision C C^T, given standard normal noise, all [..., L].

    .. math:: z = \mu + C^{-T} \epsilon
    """
    return mean + tf.linalg.triangular_solve(root, noise[..., None], adjoint=True)[..., 0]


def kl_of_root(mean: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    r"""Returns the KL divergence of a Gaussian with precision C C^T from N(0, I) in nats, [...].

    .. math:: \frac{1}{2} \bigl(\|C^{-1}\|^2 + \|\mu\|^2 - L\bigr) + \sum_l \log C_{ll}
    """
    size = root.shape[-1]
    inverse = tf.linalg.triangular_solve(root, tf.eye(size, batch_shape=root.shape[:-2]))
    trace = tf.reduce_sum(tf.square(inverse), axis=[-2, -1])
    logarithms = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)), axis=-1)
    return 0.5 * (trace + tf.reduce_sum(tf.square(mean), axis=-1) - size) + logarithms
