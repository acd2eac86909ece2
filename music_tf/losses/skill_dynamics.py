"""Skill dynamics (Sharma et al., 2020, arXiv:1907.01657)."""

import math

import tensorflow as tf

_CLIP = 50.0
"""Bound of a difference of log-densities, so that no exponential overflows."""


def skill_dynamics_reward(log_densities: tf.Tensor, active: tf.Tensor) -> tf.Tensor:
    r"""The log-ratio of the active skill's density of a change to the mean density of K skills.

    .. math:: r = \log K - \log \sum_k \exp \operatorname{clip}(l_k - l_z, -50, 50), \quad
        l_k = \log q(\Delta | f(s), z_k)

    Args:
        log_densities: l of all one-hot skills, or of the active and some random ones, [..., K].
        active: Which of them is z, one-hot, shape [..., K].

    Returns:
        Nats, at most log K, and 0 if all skills have the same density; shape [...].
    """
    log_densities.shape.assert_is_compatible_with(active.shape)
    its_own = tf.reduce_sum(log_densities * active, axis=-1, keepdims=True)
    better = tf.clip_by_value(log_densities - its_own, -_CLIP, _CLIP)
    return math.log(active.shape[-1]) - tf.reduce_logsumexp(better, axis=-1)
