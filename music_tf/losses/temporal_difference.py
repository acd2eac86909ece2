"""Targets and losses of action values."""

import tensorflow as tf


def td_target(
    reward: tf.Tensor, discount: tf.Tensor, next_q: tf.Tensor, bounds: tuple[tf.Tensor, tf.Tensor]
) -> tf.Tensor:
    r"""One-step Bellman target with a pessimistic ensemble and bounded returns.

    .. math:: y = \operatorname{clip}(r + \gamma \min_i \bar Q_i(s', a'), lo, hi)

    Bounds as in hindsight experience replay (Andrychowicz et al., 2017, arXiv:1707.01495).

    Args:
        reward: r, the sum of all terms, with a learner's bonus and what a lost object would pay
            later, shape [W, B].
        discount: gamma, zero where no next state follows: after a termination, a loss of the
            object, or a relabelled goal that ends the episode, shape [W, B].
        next_q: Values of the next state, of which the lowest counts, shape [C, W, B].
        bounds: (lo, hi), numbers or scalars; infinite where returns are not bounded.

    Returns:
        Targets without gradient, shape [W, B].
    """
    tf.debugging.assert_shapes([(reward, "WB"), (discount, "WB"), (next_q, "CWB")])
    target = reward + discount * tf.reduce_min(next_q, axis=0)
    return tf.stop_gradient(tf.clip_by_value(target, bounds[0], bounds[1]))


def value_target(q: tf.Tensor, log_density: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    r"""Target of the state value in SAC (Haarnoja et al., 2018, arXiv:1801.01290).

    .. math:: y_V = \min_i Q_i(s, \tilde a) - \alpha \log \pi(\tilde a | s)

    Args:
        q: Critics at freshly drawn actions, shape [C, W, B].
        log_density: log pi of these actions, shape [W, B].
        temperature: alpha, scalar.

    Returns:
        Targets without gradient, shape [W, B].
    """
    tf.debugging.assert_shapes([(q, "CWB"), (log_density, "WB"), (temperature, ())])
    return tf.stop_gradient(tf.reduce_min(q, axis=0) - temperature * log_density)


def critic_loss(q: tf.Tensor, target: tf.Tensor, counted: tf.Tensor | None = None) -> tf.Tensor:
    r"""Mean squared error to a target, summed over the ensemble.

    .. math:: L_Q = \sum_i \frac{1}{B} \sum_b (y_b - Q_i(s_b, a_b))^2

    Args:
        q: Critics at replayed actions, shape [C, W, B].
        target: y, shape [W, B].
        counted: 1, or 0 for steps whose error counts as 0, shape [W, B]; None: all 1.

    Returns:
        One loss a worker, shape [W].
    """
    return tf.reduce_sum(tf.reduce_mean(tf.square(_error(q, target, counted)), axis=-1), axis=0)


def half_mean_critic_loss(
    q: tf.Tensor, target: tf.Tensor, counted: tf.Tensor | None = None
) -> tf.Tensor:
    r"""Half the mean squared error to a target, over batch and ensemble, as in QDax.

    .. math:: L_Q = \frac{1}{2 C B} \sum_{i,b} (y_b - Q_i(s_b, a_b))^2

    Arguments and result as in `critic_loss`.
    """
    return 0.5 * tf.reduce_mean(tf.square(_error(q, target, counted)), axis=[0, 2])


def _error(q: tf.Tensor, target: tf.Tensor, counted: tf.Tensor | None) -> tf.Tensor:
    masks = [] if counted is None else [(counted, "WB")]
    tf.debugging.assert_shapes([(q, "CWB"), (target, "WB"), *masks])
    return target - q if counted is None else counted * (target - q)
