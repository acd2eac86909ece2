"""The Keras models of all learners and rewards.

Unless stated otherwise, hidden layers are ReLU, initial biases zero and initial kernels
Glorot-uniform, as in OpenAI Baselines' HER.
"""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from music_tf.config.agents import GRU, LSTM, AgentConfig
from music_tf.networks.acting import CLIPPED_RANGE, GAUSSIANS, LEAST_DEVIATION, LOG_DEVIATION_RANGE

_LEAST_VARIANCE = 1e-5  # is added to that of a layer's units


def _dense(
    units: int,
    activation: str | None,
    name: str,
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Layer:
    kernel = keras.initializers.GlorotUniform(seed=(number := int(seed.integers(2**31))))
    if initializer == "lecun_uniform":
        # within sqrt(3 / fan-in)
        kernel = keras.initializers.VarianceScaling(1.0, "fan_in", "uniform", seed=number)
    elif initializer == "orthogonal":
        kernel = keras.initializers.Orthogonal(seed=number)
    elif initializer == "identity":
        kernel = keras.initializers.Identity()
    elif initializer == "he_normal" and activation == "relu":
        normal = "untruncated_normal"
        kernel = keras.initializers.VarianceScaling(2.0, "fan_in", normal, seed=number)
    return keras.layers.Dense(units, activation=activation, name=name, kernel_initializer=kernel)


@tf.custom_gradient
def _standardized(values: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Gives the last axis mean 0 and variance 1, in fewer passes over memory than Keras."""
    centred = values - tf.reduce_mean(values, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    scale = tf.math.rsqrt(variance + _LEAST_VARIANCE)
    result = centred * scale

    def gradient(after: tf.Tensor) -> tf.Tensor:
        mean = tf.reduce_mean(after, -1, keepdims=True)
        return scale * (after - mean - result * tf.reduce_mean(after * result, -1, keepdims=True))

    return result, gradient


class _LayerNorm(keras.layers.LayerNormalization):
    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return _standardized(inputs) * self.gamma + self.beta


def _hidden(
    inputs: keras.KerasTensor,
    sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
    layer_norm: bool = False,
) -> keras.KerasTensor:
    for index, units in enumerate(sizes):
        dense = _dense(units, "relu", f"hidden_{index}", seed, initializer)
        if layer_norm:
            dense.activation = keras.activations.linear
            normalize = _LayerNorm(epsilon=_LEAST_VARIANCE, name=f"norm_{index}")
            inputs = keras.activations.relu(normalize(dense(inputs)))
        else:
            inputs = dense(inputs)
    return inputs


def deterministic_actor(
    input_dim: int,
    action_dim: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps [B, input_dim] to actions in (-1, 1), [B, A]."""
    inputs = keras.Input([input_dim])
    hidden = _hidden(inputs, hidden_sizes, seed, initializer)
    return keras.Model(inputs, _dense(action_dim, "tanh", "action", seed, initializer)(hidden))


def gaussian_actor(
    input_dim: int,
    action_dim: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    actor: str = "gaussian",
    initializer: str = "glorot",
) -> keras.Model:
    """Maps [B, input_dim] to mean and log-deviation before squashing, each [B, A].

    Of `acting.GAUSSIANS`, the MUSIC release (arXiv:2103.08107) has the features and tanh, Brax and
    QDax have softplus, and the code of SAC (arXiv:1801.01290) clips.
    """
    kind = GAUSSIANS[actor]
    inputs = keras.Input([input_dim])
    hidden = _hidden(inputs, hidden_sizes, seed, initializer)
    if kind.features:
        hidden = _dense(hidden_sizes[-1], None, "features", seed, initializer)(hidden)
    mean = _dense(action_dim, None, "mean", seed, initializer)(hidden)
    squash = "tanh" if kind.deviation == "tanh" else None
    outputs = _dense(action_dim, squash, "log_deviation", seed, initializer)(hidden)
    if kind.deviation == "softplus":
        log_deviation = keras.ops.log(keras.ops.softplus(outputs) + LEAST_DEVIATION)
    elif kind.deviation == "clip":
        log_deviation = keras.ops.clip(outputs, *CLIPPED_RANGE)
    else:
        low, high = LOG_DEVIATION_RANGE
        log_deviation = low + 0.5 * (high - low) * (outputs + 1.0)
    return keras.Model(inputs, [mean, log_deviation])


def critic(
    agent: AgentConfig, size: int, seed: np.random.Generator, outputs: int = 1, name: str = "value"
) -> keras.Model:
    """Maps [B, size], inputs and any actions, to values [B, outputs] of a last layer `name`."""
    inputs = keras.Input([size])
    hidden = _hidden(inputs, agent.critic_layers, seed, agent.initializer, agent.layer_norm)
    return keras.Model(inputs, _dense(outputs, None, name, seed, agent.initializer)(hidden))


def statistics_network(
    agent_dim: int,
    surrounding_dim: int,
    hidden_size: int,
    seed: np.random.Generator,
    activation: str = "relu",
) -> keras.Model:
    """The MINE network T(x, y) of MUSIC: [R, agent] and [R, surrounding] to (-1, 1), [R, 1]."""
    agent = keras.Input([agent_dim])
    surrounding = keras.Input([surrounding_dim])
    joined = keras.layers.add(
        [
            _dense(hidden_size, None, "agent", seed)(agent),
            _dense(hidden_size, None, "surrounding", seed)(surrounding),
        ]
    )
    score = _dense(1, "tanh", "score", seed)(keras.layers.Activation(activation)(joined))
    return keras.Model([agent, surrounding], score)


def influence_model(
    inputs_dim: int, outputs: int, hidden_sizes: Sequence[int], seed: np.random.Generator
) -> keras.Model:
    """Maps [B, inputs_dim] to means and raw variances, [B, outputs], as in arXiv:2106.03443."""
    hidden = inputs = keras.Input([inputs_dim])
    for index, units in enumerate(hidden_sizes):
        hidden = _dense(units, "tanh", f"hidden_{index}", seed, "orthogonal")(hidden)
    heads = [_dense(outputs, None, name, seed, "orthogonal") for name in ("mean", "variance")]
    return keras.Model(inputs, [head(hidden) for head in heads])


def recurrent_encoder(
    kind: str,
    row_dim: int,
    outputs: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps sequences [B, N, row_dim] and states [B, H] to outputs [B, outputs] and new states."""
    rows, state = keras.Input([None, row_dim]), keras.Input([hidden_sizes[-1]])
    cell = {GRU: keras.layers.GRU, LSTM: keras.layers.LSTM}[kind](
        hidden_sizes[-1],
        return_state=True,
        name=kind,
        kernel_initializer=keras.initializers.GlorotUniform(seed=int(seed.integers(2**31))),
        recurrent_initializer=keras.initializers.Orthogonal(seed=int(seed.integers(2**31))),
        use_cudnn=False,  # equal results on CPU and GPU, and XLA does not support cuDNN's GRU
    )
    first = state if kind == GRU else [state, keras.ops.zeros_like(state)]  # as in PEARL's code
    last, after, *_ = cell(_hidden(rows, hidden_sizes, seed, initializer), initial_state=first)
    factors = _dense(outputs, None, "factor", seed, initializer)(last)
    return keras.Model([rows, state], [factors, after])


def plain(
    size: int,
    outputs: int,
    name: str,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps [B, size] to [B, outputs] by hidden layers and a linear layer called `name`."""
    inputs = keras.Input([size])
    hidden = _hidden(inputs, hidden_sizes, seed, initializer)
    return keras.Model(inputs, _dense(outputs, None, name, seed, initializer)(hidden))
