"""Targets and losses of action values."""

import tensorflow as tf


def td_target(
    reward: tf.Tensor,
    discount: tf.Tensor,
    next_q: tf.Tensor,
    bounds: tuple[float, float],
) -> tf.Tensor:
    r"""One-step Bellman target with a pessimistic ensemble and bounded returns.

    .. math:: y = \operatorname{clip}(r + \gamma \min_i \bar Q_i(s', a'), lo, hi)

    Bounds as in hindsight experience replay (Andrychowicz et al., 2017, arXiv:1707.01495).

    Args:
        reward: r with every term that belongs to it, shape [W, B].
        discount: gamma, zero where the episode terminated, shape [W, B].
        next_q: Target critics at a', shape [C, W, B].
        bounds: (lo, hi), infinite where returns are not bounded.

    Returns:
        Targets without gradient, shape [W, B].
    """
    tf.debugging.assert_shapes([(reward, "WB"), (discount, "WB"), (next_q, "CWB")])
    target = reward + discount * tf.reduce_min(next_q, axis=0)
    return tf.stop_gradient(tf.clip_by_value(target, bounds[0], bounds[1]))


def critic_loss(q: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    r"""Mean squared error to a target, summed over the ensemble.

    .. math:: L_Q = \sum_i \frac{1}{B} \sum_b (y_b - Q_i(s_b, a_b))^2

    Args:
        q: Critics at replayed actions, shape [C, W, B].
        target: y, shape [W, B].

    Returns:
        One loss a worker, shape [W].
    """
    tf.debugging.assert_shapes([(q, "CWB"), (target, "WB")])
    return tf.reduce_sum(tf.reduce_mean(tf.square(target - q), axis=-1), axis=0)
