"""Losses of distance-maximising skills: steps in an embedding are bounded by a distance.

LSD (Park et al., 2022, arXiv:2202.00914), CSD (Park et al., 2023, arXiv:2302.05103) and METRA (Park
et al., 2024, arXiv:2310.08887).
"""

import math

import tensorflow as tf

from music_tf.distributions import gaussian_log_density


def direction(condition: tf.Tensor, one_hot: bool) -> tf.Tensor:
    r"""Returns the direction in the embedding for a condition, [..., D].

    .. math:: z, \quad \text{or for one of } K \text{ skills} \quad
        c_k = \frac{K}{K - 1} \left(e_k - \frac{1}{K}\right)

    The codes of skills sum to zero, so that a change that is equal in all components of the
    embedding is not paid.

    Args:
        condition: z, or one-hot skills, [..., D].
        one_hot: Whether conditions are one-hot.

    Raises:
        ValueError: A single skill, which has no direction.
    """
    if not one_hot:
        return condition
    count = condition.shape[-1]
    if count == 1:
        raise ValueError("direction: one skill alone has no direction")
    return (condition - 1.0 / count) * (count / (count - 1.0))


def inner_product_reward(step: tf.Tensor, towards: tf.Tensor) -> tf.Tensor:
    r"""Returns the displacement of a step in a direction, [...].

    .. math:: r = (\phi(s') - \phi(s))^T z

    The rewards of an episode sum to its displacement in the embedding along z.

    Args:
        step: phi(s') - phi(s), [..., D].
        towards: The direction z, [..., D].
    """
    step.shape.assert_is_compatible_with(towards.shape)
    return tf.reduce_sum(step * towards, axis=-1)


def velocity_reward(step: tf.Tensor, towards: tf.Tensor, speed: tf.Tensor | float) -> tf.Tensor:
    r"""Returns how well a step keeps to a velocity in the embedding, [...].

    .. math:: r = \Delta\phi^T z - \frac{\lVert \Delta\phi \rVert^2}{2 v}
        = \frac{v}{2} \lVert z \rVert^2 - \frac{1}{2 v} \lVert \Delta\phi - v z \rVert^2

    Args:
        step: phi(s') - phi(s), [..., D].
        towards: z, [..., D].
        speed: v, the length of the best step where z has length 1, broadcast to [...]; inf: the
            first term alone.
    """
    squares = tf.reduce_sum(tf.square(step), axis=-1)
    return inner_product_reward(step, towards) - squares / (2.0 * speed)


def approach_reward(before: tf.Tensor, after: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    r"""Returns how much nearer a step comes to a place in the embedding, [...].

    .. math:: r = \lVert g - \phi(s) \rVert - \lVert g - \phi(s') \rVert

    The rewards of an episode sum to the distance at its start less that at its end. The states phi
    before and after the step, and the place g, are [..., D].
    """
    return tf.norm(place - before, axis=-1) - tf.norm(place - after, axis=-1)


def slack(step: tf.Tensor, squared_distance: tf.Tensor, mean: bool, most: float) -> tf.Tensor:
    r"""Returns the slack of the constraint on the length of a step, at most `most`, [...].

    .. math:: \min\left(\epsilon, d(s, s')^2 - \frac{1}{D} \sum_i (\Delta\phi_i)^2\right)

    Args:
        step: phi(s') - phi(s), [..., D].
        squared_distance: d^2 of each pair of states, [...].
        mean: Whether squares are averaged over the D components, as in released code, so that the
            longest step has length sqrt(D) d, or summed as in METRA's equation, with length d.
        most: epsilon.
    """
    squared_distance.shape.assert_is_compatible_with(step.shape[:-1])
    squares = tf.square(step)
    length = tf.reduce_mean(squares, axis=-1) if mean else tf.reduce_sum(squares, axis=-1)
    return tf.minimum(most, squared_distance - length)


def embedding_loss(
    reward: tf.Tensor, left: tf.Tensor, log_dual: tf.Tensor, log_floor: float = -math.inf
) -> tf.Tensor:
    r"""Returns the sum of the losses of embedding and dual variable, [...].

    .. math:: -(r + \operatorname{sg}[\lambda] \, c) + \log \lambda \, \operatorname{sg}[c]

    The gradient of log lambda is the slack c, without the factor lambda, as in released code. At
    its floor log lambda only increases, where the constraint is violated.

    Args:
        reward: r of each pair of states, [...].
        left: Their slack c, [...].
        log_dual: log lambda, [].
        log_floor: Lower bound of log lambda.
    """
    price = tf.stop_gradient(tf.exp(tf.maximum(log_dual, log_floor)))
    felt = tf.where(log_dual > log_floor, left, tf.minimum(left, 0.0))
    return -(reward + price * left) + log_dual * tf.stop_gradient(felt)


def gaussian_loss(
    mean: tf.Tensor, log_deviation: tf.Tensor, change: tf.Tensor, released: bool
) -> tf.Tensor:
    r"""Returns the loss of a Gaussian model of state changes, summed over columns, [...].

    .. math:: \sum_j \frac{e_j^2}{2} + \log \sigma_j + \frac{1}{2} \log 2 \pi, \quad
        \text{released:} \quad \sum_j e_j^2 + \sigma_j, \quad
        e_j = \frac{\Delta_j - \mu_j}{\sigma_j}

    The second loss, from CSD's code for Fetch, is no likelihood: its optimal deviation for an error
    is (2 error^2)^(1/3), so that deviations differ less between columns.

    Args:
        mean: mu, [..., n].
        log_deviation: log sigma, [..., n].
        change: Delta = s' - s, [..., n].
        released: Whether to use the second loss.
    """
    mean.shape.assert_is_compatible_with(change.shape)
    if not released:
        return -gaussian_log_density(change, mean, log_deviation)
    squares = tf.square((change - mean) * tf.exp(-log_deviation))
    return tf.reduce_sum(squares + tf.exp(log_deviation), axis=-1)


def controllability_log_weights(log_deviation: tf.Tensor) -> tf.Tensor:
    r"""Returns log-weights of columns in CSD's distance, [..., n], which sum to zero.

    .. math:: \log w_j = -2 \log \sigma_j + \frac{2}{n} \sum_i \log \sigma_i

    A column that hardly ever changes has a small sigma and a large weight.
    """
    weights = -2.0 * log_deviation
    return weights - tf.reduce_mean(weights, axis=-1, keepdims=True)


def squared_controllability_distance(
    mean: tf.Tensor, log_deviation: tf.Tensor, change: tf.Tensor
) -> tf.Tensor:
    r"""Returns the squared distance of CSD, which is large for unlikely changes, [...].

    .. math:: d^2 = \frac{1}{n} \sum_j w_j (\Delta_j - \mu_j)^2, \quad \prod_j w_j = 1

    The paper adds the distance from s' to s; its code and this function do not.

    Args:
        mean: mu, [..., n].
        log_deviation: log sigma, [..., n].
        change: Delta = s' - s, [..., n].
    """
    weights = tf.exp(controllability_log_weights(log_deviation))
    return tf.reduce_mean(weights * tf.square(change - mean), axis=-1)
