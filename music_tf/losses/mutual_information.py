"""Variational lower bounds on mutual information."""

import tensorflow as tf


def donsker_varadhan(
    joint_scores: tf.Tensor, marginal_scores: tf.Tensor, valid: tf.Tensor
) -> tf.Tensor:
    r"""Donsker-Varadhan lower bound on mutual information, in nats.

    .. math:: I(X; Y) \ge E_{p(x, y)}[T] - \log E_{p(x) p(y)}[e^T]

    The bound of MINE (Belghazi et al., 2018, arXiv:1801.04062), taken within one trajectory:
    both averages run over its N states. Scores must be bounded, because no maximum is subtracted
    before the exponential.

    Args:
        joint_scores: T at pairs drawn together, each in [-1, 1], shape [..., N].
        marginal_scores: T at pairs drawn apart, each in [-1, 1], shape [..., N].
        valid: 1 for states that belong to the trajectory and 0 for padding, shape [..., N].

    Returns:
        One bound a trajectory, shape [...].
    """
    joint_scores.shape.assert_is_compatible_with(marginal_scores.shape)
    joint_scores.shape.assert_is_compatible_with(valid.shape)
    count = tf.reduce_sum(valid, axis=-1)
    joint = tf.reduce_sum(valid * joint_scores, axis=-1) / count
    marginal = tf.reduce_sum(valid * tf.exp(marginal_scores), axis=-1) / count
    return joint - tf.math.log(marginal)


def pair_bound(scores: tf.Tensor, swapped: tf.Tensor, all_pairs: bool) -> tf.Tensor:
    r"""The Donsker-Varadhan bound on the two states of a transition, N = 2.

    With T_ij the score of agent state t + i beside surrounding state t + j:

    .. math:: m = \tfrac12 (T_{00} + T_{11}) - \log \tfrac12 (e^{T_{01}} + e^{T_{10}})

    if the negatives are swapped. If their random permutation is the identity, the logarithm has
    T_00 and T_11, so that m <= 0. With `all_pairs` it has the mean over all four combinations.
    Scores enter as differences, so that m is exactly 0 where the surrounding state does not change,
    without a rounding error of a millionth of a nat.

    Args:
        scores: T_ij in [-1, 1], shape [2, 2, W, B].
        swapped: True where the negatives of a worker's whole batch are swapped, shape [W].
        all_pairs: Takes all four combinations as negatives and ignores `swapped`.

    Returns:
        m in nats, shape [W, B].
    """
    tf.debugging.assert_shapes([(scores, (2, 2, "W", "B")), (swapped, "W")])
    half = 0.5 * (scores[0, 0] - scores[1, 1])
    before, after = scores[0, 1] - scores[0, 0] + half, scores[1, 0] - scores[1, 1] - half
    diagonal = 0.5 * (tf.math.expm1(half) + tf.math.expm1(-half))
    crossed = 0.5 * (tf.math.expm1(before) + tf.math.expm1(after))
    if all_pairs:
        return -tf.math.log1p(0.5 * (diagonal + crossed))
    return -tf.math.log1p(tf.where(swapped[:, None], crossed, diagonal))
