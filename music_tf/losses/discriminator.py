"""Skill discrimination (Eysenbach et al., 2019, arXiv:1802.06070)."""

import tensorflow as tf

from music_tf.distributions import gaussian_log_density, von_mises_fisher_log_density

_LOG_DEVIATIONS = (-5.0, 2.0)


def skill_log_likelihood(logits: tf.Tensor, skill: tf.Tensor) -> tf.Tensor:
    r"""Log-likelihood of the active skill.

    .. math:: \log q(z | s) = \sum_k z_k \log \operatorname{softmax}(l(s))_k

    Args:
        logits: l(s), shape [..., K].
        skill: z, one-hot, shape [..., K].

    Returns:
        Nats, at most 0, shape [...]; its negative mean is the discriminator's loss.
    """
    logits.shape.assert_is_compatible_with(skill.shape)
    return tf.reduce_sum(skill * tf.nn.log_softmax(logits), axis=-1)


def skill_hits(logits: tf.Tensor, skill: tf.Tensor) -> tf.Tensor:
    """Whether the most likely skill is the active one: 1 or 0, shape [...].

    Args:
        logits: Shape [..., K].
        skill: One-hot, shape [..., K].
    """
    logits.shape.assert_is_compatible_with(skill.shape)
    hits = tf.equal(tf.argmax(logits, axis=-1), tf.argmax(skill, axis=-1))
    return tf.cast(hits, tf.float32)


def gaussian_log_likelihood(outputs: tf.Tensor, skill: tf.Tensor) -> tf.Tensor:
    r"""Log-density of a continuous skill under a diagonal Gaussian.

    .. math:: \log q(z | s) = \log N(z; \mu(s), \sigma(s))

    Args:
        outputs: mu, and log sigma before it is squashed to [-5, 2], shape [..., 2 K].
        skill: z, shape [..., K].

    Returns:
        Nats, shape [...].
    """
    mean, raw = tf.split(outputs, 2, axis=-1)
    low, high = _LOG_DEVIATIONS
    log_deviation = low + 0.5 * (high - low) * (tf.tanh(raw) + 1.0)
    return gaussian_log_density(skill, mean, log_deviation)


def von_mises_fisher_log_likelihood(outputs: tf.Tensor, skill: tf.Tensor) -> tf.Tensor:
    r"""Log-density of a skill on the unit sphere around a mean direction.

    .. math:: \log q(z | s) = \log C_K(\kappa(s)) + \kappa(s) \mu(s)^T z

    Args:
        outputs: mu before normalisation, and kappa before softplus, shape [..., K + 1].
        skill: z, of norm 1, shape [..., K].

    Returns:
        Nats, shape [...].
    """
    direction = tf.math.l2_normalize(outputs[..., :-1], axis=-1)
    return von_mises_fisher_log_density(skill, direction, tf.nn.softplus(outputs[..., -1]))


CONTINUOUS = {
    "gaussian": gaussian_log_likelihood,
    "von_mises_fisher": von_mises_fisher_log_likelihood,
}
"""Log-densities of continuous skills by the name of the posterior."""
