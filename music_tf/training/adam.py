"""Adam on one flat vector (Kingma and Ba, 2015, arXiv:1412.6980)."""

from typing import NamedTuple

import tensorflow as tf

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Moments of the gradient."""

    first: tf.Tensor  # [P]
    second: tf.Tensor  # [P]


def adam_step(
    parameters: tf.Tensor,
    gradient: tf.Tensor,
    state: AdamState,
    step: tf.Tensor,
    learning_rate: tf.Tensor,
) -> tuple[tf.Tensor, AdamState]:
    r"""One step with a learning rate for each parameter.

    .. math:: \theta \leftarrow \theta
        - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    The "epsilon hat" form of the paper's section 2, as in Keras and OpenAI Baselines, with
    epsilon 1e-8. A parameter that never got a gradient stays bit-identical.

    Args:
        parameters: theta before the step, shape [P].
        gradient: Shape [P].
        state: m and v before the step.
        step: t, counted from 1, float32 scalar.
        learning_rate: eta, shape [P].

    Returns:
        theta and the moments after the step.
    """
    first = _BETA_1 * state.first + (1.0 - _BETA_1) * gradient
    second = _BETA_2 * state.second + (1.0 - _BETA_2) * tf.square(gradient)
    correction = tf.sqrt(1.0 - _BETA_2**step) / (1.0 - _BETA_1**step)
    change = learning_rate * correction * first / (tf.sqrt(second) + _EPSILON)
    return parameters - change, AdamState(first, second)
