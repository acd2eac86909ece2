"""Probability distributions; the only module that imports tensorflow_probability."""

import contextlib
import functools
import io
import math
from typing import Any, NamedTuple

import tensorflow as tf

from music_tf.errors import EnvironmentFault, error_line

_EPSILON = 1e-6


class SquashedSample(NamedTuple):
    """Actions drawn from a tanh-Gaussian."""

    action: tf.Tensor  # [..., A], in (-1, 1)
    log_density: tf.Tensor  # [...]
    mean: tf.Tensor  # [..., A], before squashing
    log_deviation: tf.Tensor  # [..., A]
    raw: tf.Tensor  # [..., A], the sample before squashing


def sample_tanh_gaussian(
    mean: tf.Tensor, log_deviation: tf.Tensor, noise: tf.Tensor, epsilon: bool = False
) -> SquashedSample:
    r"""Squashes reparameterised Gaussian samples by tanh; differentiable in mu and sigma.

    .. math:: a = \tanh(x), \; x = \mu + \sigma \epsilon, \quad
        \log \pi(a) = \sum_i \log N(x_i; \mu_i, \sigma_i) - \log(1 - \tanh^2 x_i)

    The change of variables of SAC (arXiv:1801.01290, appendix C), with log(1 - tanh^2 x) written
    as 2 (log 2 - x - softplus(-2 x)), which is finite for any x. With `epsilon` it is
    log(1 - a^2 + 1e-6), as in the authors' code of SAC and the MUSIC release, which is bounded near
    saturation; 1 - a^2 is computed as 4 u / (1 + u)^2 with u = exp(-2 |x|). Mean, log-deviation and
    standard normal noise have the shape [..., A].
    """
    raw = mean + tf.exp(log_deviation) * noise
    log_normal = -0.5 * (tf.square(noise) + 2.0 * log_deviation + math.log(2.0 * math.pi))
    if epsilon:
        small = tf.exp(-2.0 * tf.abs(raw))  # 1 - tanh^2 from tanh loses all digits from |x| = 7 on
        log_slope = tf.math.log(4.0 * small / tf.square(1.0 + small) + _EPSILON)
    else:
        log_slope = 2.0 * (math.log(2.0) - raw - tf.nn.softplus(-2.0 * raw))
    action, log_density = tf.tanh(raw), tf.reduce_sum(log_normal - log_slope, axis=-1)
    return SquashedSample(action, log_density, mean, log_deviation, raw)


def gaussian_log_density(value: tf.Tensor, mean: tf.Tensor, log_deviation: tf.Tensor) -> tf.Tensor:
    """Log-density of a Gaussian with independent components, all [..., K], shape [...]."""
    distance = (value - mean) * tf.exp(-log_deviation)
    each = tf.square(distance) + 2.0 * log_deviation + math.log(2.0 * math.pi)
    return -0.5 * tf.reduce_sum(each, axis=-1)


def mixture_log_density(
    value: tf.Tensor, logits: tf.Tensor, means: tf.Tensor, log_deviations: tf.Tensor
) -> tf.Tensor:
    r"""Log-density in nats, [...], of a mixture of Gaussians with independent components.

    .. math:: \log p(x) = \log \sum_m \operatorname{softmax}(l)_m N(x; \mu_m, \sigma_m)

    x is [..., D], the logits l [..., M], means and log-deviations [..., M, D].
    """
    each = gaussian_log_density(value[..., None, :], means, log_deviations)
    return tf.reduce_logsumexp(tf.nn.log_softmax(logits) + each, axis=-1)


def von_mises_fisher_log_density(
    value: tf.Tensor, direction: tf.Tensor, concentration: tf.Tensor
) -> tf.Tensor:
    r"""Log-density in nats, [...], on the unit sphere of R^K around a mean direction mu.

    .. math:: \log C_K(\kappa) + \kappa \mu^T x, \quad
        C_K(\kappa) = \frac{\kappa^{K/2-1}}{(2 \pi)^{K/2} I_{K/2-1}(\kappa)}

    x and mu are of norm 1, [..., K]. kappa is above 0, [...]; at least 0.001 is used.
    """
    size = int(value.shape[-1])
    order, kappa = 0.5 * size - 1.0, tf.maximum(concentration, 1e-3)
    scaled_bessel = _library().math.log_bessel_ive(tf.constant(order, kappa.dtype), kappa)
    log_constant = order * tf.math.log(kappa) - 0.5 * size * math.log(2.0 * math.pi)
    aligned = tf.reduce_sum(value * direction, axis=-1)
    return log_constant - scaled_bessel + kappa * (aligned - 1.0)


def log_prior(kind: str, condition: tf.Tensor) -> tf.Tensor:
    """Returns the log-density of conditions [..., K] under the prior of a kind, in nats [...]."""
    size = int(condition.shape[-1])
    if kind == "gaussian":
        return gaussian_log_density(condition, tf.zeros([size]), tf.zeros([size]))
    if kind == "box":
        return tf.fill(tf.shape(condition)[:-1], -size * math.log(2.0))
    surface = math.log(2.0) + 0.5 * size * math.log(math.pi) - math.lgamma(0.5 * size)
    if kind != "ball":
        return tf.fill(tf.shape(condition)[:-1], -surface)
    length = tf.maximum(tf.norm(condition, axis=-1), 1e-6)  # is uniform in [0, 1]
    return -surface - (size - 1.0) * tf.math.log(length)


@functools.cache
def _library() -> Any:
    """Imports tensorflow_probability on first use, because that takes seconds and megabytes."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a paragraph about what it lacks
            import tensorflow_probability  # noqa: PLC0415

            _ = tensorflow_probability.math.log_bessel_ive  # its parts are loaded late
    except Exception as error:
        raise EnvironmentFault(
            f"tensorflow-probability cannot be loaded ({error_line(error)}), which the density of "
            "von Mises and Fisher needs\n"
            "cure: what music-tf doctor says, or --skill.posterior gaussian"
        ) from error
    return tensorflow_probability
