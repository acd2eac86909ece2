"""Adam on a part of a flat vector, with a learning rate for each weight."""

from typing import NamedTuple

import tensorflow as tf

from music_tf.types import Array

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Moments of the gradient, and a buffer for one step."""

    first: tf.Variable  # [P]
    second: tf.Variable  # [P]
    change: tf.Variable  # [P], scratch memory

    @classmethod
    def zeros(cls, like: Array) -> "AdamState":
        """Returns the state before the first step of parameters of this shape."""
        return cls(*(tf.Variable(tf.zeros_like(like)) for _ in cls._fields))


def adam_step(
    parameters: tf.Variable,  # theta, [P]
    gradient: tf.Tensor,  # [Q]
    state: AdamState,  # m and v, [Q] each
    step: tf.Tensor,  # t, counted from 1, float32 scalar
    learning_rate: tf.Tensor,  # eta, [P]
    own: slice | None = None,  # the part that is updated, of size Q; None: the whole vector
) -> None:
    r"""Takes one step of Adam (Kingma and Ba, 2015, arXiv:1412.6980) on a part of a vector.

    .. math:: \theta \leftarrow \theta
        - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    The "epsilon hat" form of the paper's section 2, as in Keras and OpenAI Baselines, with
    epsilon 1e-8. A parameter that never got a gradient stays bit-identical. TensorFlow's fused
    operation takes one scalar learning rate, so we call it with 1 and scale its step.
    """
    state.change.assign(tf.zeros_like(gradient))
    tf.raw_ops.ResourceApplyAdam(
        var=state.change.handle,
        m=state.first.handle,
        v=state.second.handle,
        beta1_power=_BETA_1**step,
        beta2_power=_BETA_2**step,
        lr=1.0,
        beta1=_BETA_1,
        beta2=_BETA_2,
        epsilon=_EPSILON,
        grad=gradient,
    )
    if own is None:
        parameters.assign_add(learning_rate * state.change)
    else:
        parameters[own].assign(parameters[own] + learning_rate[own] * state.change)
