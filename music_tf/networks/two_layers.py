"""A two-layer network for very many rows, with a gradient that saves memory traffic."""

from collections.abc import Callable

import tensorflow as tf


@tf.custom_gradient
def two_layers(
    rows: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, output_kernel: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor | None, ...]]]:
    r"""Returns relu(x A + a) v, with gradients for the weights and none for the rows.

    A ReLU multiplies its input by the indicator that it is positive. With u the gradient of the
    output, all gradients follow from one product with these indicators, and the backward pass
    allocates nothing as large as the hidden layer:

    .. math:: G = [x, 1]^T \operatorname{diag}(u) \, 1\{x A + a > 0\}, \quad
        dA_{ij} = G_{ij} v_j, \quad da_j = G_{D+1,j} v_j, \quad
        dv_j = \sum_i [A; a]_{ij} G_{ij}

    Shapes are x [R, D], A [D, H], a [H], v [H, 1]; the result is [R, 1].
    """
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(rows, kernel), bias))

    def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
        extended = tf.concat([rows, tf.ones_like(upstream)], axis=1)
        pattern = tf.matmul(extended * upstream, tf.sign(hidden), transpose_a=True)  # [D + 1, H]
        first = pattern * tf.transpose(output_kernel)
        second = tf.reduce_sum(pattern * tf.concat([kernel, bias[None]], axis=0), axis=0)
        return None, first[:-1], first[-1], second[:, None]

    return tf.matmul(hidden, output_kernel), gradients
