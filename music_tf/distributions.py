"""Probability distributions; the only module that imports tensorflow_probability."""

import functools
import math
from typing import Any, NamedTuple

import tensorflow as tf

_EPSILON = 1e-6


class SquashedSample(NamedTuple):
    """Actions drawn from a tanh-Gaussian."""

    action: tf.Tensor  # [..., A], in (-1, 1)
    log_density: tf.Tensor  # [...]


def sample_tanh_gaussian(
    mean: tf.Tensor, log_deviation: tf.Tensor, noise: tf.Tensor, epsilon: bool = False
) -> SquashedSample:
    r"""Squashes reparameterised Gaussian samples by tanh.

    .. math:: a = \tanh(x), \; x = \mu + \sigma \epsilon, \quad
        \log \pi(a) = \sum_i \log N(x_i; \mu_i, \sigma_i) - \log(1 - \tanh^2 x_i)

    The change of variables of SAC (arXiv:1801.01290, appendix C), with log(1 - tanh^2 x) written
    as 2 (log 2 - x - softplus(-2 x)), finite for any x. With `epsilon` it is
    log(1 - a^2 + 1e-6), as the authors of SAC and the MUSIC release have it, which bounds it near
    saturation.

    Args:
        mean: mu, shape [..., A].
        log_deviation: log sigma, shape [..., A].
        noise: Standard normal, shape [..., A].
        epsilon: Adds 1e-6 inside the logarithm of the slope.

    Returns:
        Actions and their log-densities, differentiable in mu and sigma.
    """
    raw = mean + tf.exp(log_deviation) * noise
    log_normal = -0.5 * (tf.square(noise) + 2.0 * log_deviation + math.log(2.0 * math.pi))
    if epsilon:
        action = tf.tanh(raw)
        log_slope = tf.math.log(1.0 - tf.square(action) + _EPSILON)
        return SquashedSample(action, tf.reduce_sum(log_normal - log_slope, axis=-1))
    log_slope = 2.0 * (math.log(2.0) - raw - tf.nn.softplus(-2.0 * raw))
    return SquashedSample(tf.tanh(raw), tf.reduce_sum(log_normal - log_slope, axis=-1))


@functools.cache
def _library() -> Any:
    """Loads tensorflow_probability on first use: it costs seconds and megabytes per rank."""
    import tensorflow_probability  # noqa: PLC0415

    return tensorflow_probability


def tanh_gaussian(mean: tf.Tensor, log_deviation: tf.Tensor) -> Any:
    """Returns the tanh-Gaussian as a `tfp.distributions.Distribution`.

    For entropies, quantiles or densities at given actions, and as the reference that tests hold
    `sample_tanh_gaussian` to.

    Args:
        mean: Before squashing, shape [..., A].
        log_deviation: Before squashing, shape [..., A].
    """
    library = _library()
    normal = library.distributions.MultivariateNormalDiag(mean, tf.exp(log_deviation))
    return library.distributions.TransformedDistribution(normal, library.bijectors.Tanh())
