"""What a context says of a task: a product of Gaussian factors, and how far it is from the prior.

PEARL: efficient off-policy meta-reinforcement learning (arXiv:1903.08101, section 4.1).
"""

import tensorflow as tf

LEAST_VARIANCE = 1e-7


def product_of_gaussians(
    mean: tf.Tensor, raw_variance: tf.Tensor, counted: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns mean and variance of the posterior that N factors make, [..., L] each.

    .. math:: \sigma^2 = \Bigl(\sum_n \sigma_n^{-2}\Bigr)^{-1}, \quad
        \mu = \sigma^2 \sum_n \sigma_n^{-2} \mu_n, \quad \sigma_n^2 = \log(1 + e^{w_n})

    The prior is no factor: it acts through `kl_to_prior` alone, as in the authors' code.

    Args:
        mean: mu of each factor, shape [..., N, L].
        raw_variance: w, shape [..., N, L]; variances below 1e-7 count as that.
        counted: Which factors there are, 1 or 0, shape [..., N], at least one; None: all.
    """
    precision = 1.0 / tf.maximum(tf.nn.softplus(raw_variance), LEAST_VARIANCE)
    if counted is not None:
        precision *= counted[..., None]
    variance = 1.0 / tf.reduce_sum(precision, axis=-2)
    return variance * tf.reduce_sum(precision * mean, axis=-2), variance


def kl_to_prior(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    r"""Returns the divergence of a diagonal Gaussian from the standard one in nats, [...].

    .. math:: KL(N(\mu, \sigma^2) || N(0, 1)) = \frac{1}{2} \sum_l
        \sigma_l^2 + \mu_l^2 - 1 - \log \sigma_l^2
    """
    each = variance + tf.square(mean) - 1.0 - tf.math.log(variance)
    return 0.5 * tf.reduce_sum(each, axis=-1)
