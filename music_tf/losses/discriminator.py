"""Skill discrimination (Eysenbach et al., 2019, arXiv:1802.06070)."""

import tensorflow as tf


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
