"""The networks of all learners and rewards.

Hidden layers are ReLU and biases zero. Kernels are Glorot-uniform as in OpenAI Baselines' HER,
unless another initialiser is named.
"""

from collections.abc import Sequence

import keras
import numpy as np

from music_tf.networks.acting import CLIPPED_RANGE, GAUSSIANS, LEAST_DEVIATION, LOG_DEVIATION_RANGE

_LECUN = {"scale": 1.0, "mode": "fan_in", "distribution": "uniform"}  # within sqrt(3 / fan-in)
_HE = {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"}


def _dense(
    units: int,
    activation: str | None,
    name: str,
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Layer:
    kernel = keras.initializers.GlorotUniform(seed=(number := int(seed.integers(2**31))))
    if initializer == "lecun_uniform":
        kernel = keras.initializers.VarianceScaling(**_LECUN, seed=number)
    elif initializer == "orthogonal":
        kernel = keras.initializers.Orthogonal(seed=number)
    elif initializer == "he_normal" and activation == "relu":
        kernel = keras.initializers.VarianceScaling(**_HE, seed=number)
    return keras.layers.Dense(units, activation=activation, name=name, kernel_initializer=kernel)


def _hidden(
    inputs: keras.KerasTensor,
    sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.KerasTensor:
    for index, units in enumerate(sizes):
        inputs = _dense(units, "relu", f"hidden_{index}", seed, initializer)(inputs)
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
    r"""Maps [B, input_dim] to mean and log-deviation before squashing, each [B, A].

    `actor`, one of `acting.GAUSSIANS`, says how the network's output w becomes the deviation. It
    also says whether a linear layer as wide as the last hidden one stands before the heads.

    .. math:: \sigma = \exp(-5 + 3.5 (\tanh w + 1)), \quad
        \sigma = \log(1 + e^w) + 10^{-3}, \quad \sigma = \exp(\operatorname{clip}(w, -20, 2))

    The first, with the linear layer, is the MUSIC release's (arXiv:2103.08107). Brax and QDax have
    the second, the authors of SAC (arXiv:1801.01290) the third.
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
    input_dim: int,
    action_dim: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps inputs and actions, joined to [B, input_dim + A], to action values [B, 1].

    With actions of size 0 it values states alone.
    """
    return plain(input_dim + action_dim, 1, "value", hidden_sizes, seed, initializer)


def statistics_network(
    agent_dim: int,
    surrounding_dim: int,
    hidden_size: int,
    seed: np.random.Generator,
    activation: str = "relu",
) -> keras.Model:
    r"""The MINE network T(x, y) of MUSIC: maps [R, agent] and [R, surrounding] to (-1, 1), [R, 1].

    .. math:: T(x, y) = \tanh(v^T \sigma(A x + a + B y + b) + c)

    `activation` is sigma: relu as released, or tanh.
    """
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
    """Maps states beside actions, [B, inputs_dim], to means of n numbers and to what variances are.

    Both are [B, n]. Units are tanh and kernels orthogonal, as in the code of arXiv:2106.03443.
    """
    hidden = inputs = keras.Input([inputs_dim])
    for index, units in enumerate(hidden_sizes):
        hidden = _dense(units, "tanh", f"hidden_{index}", seed, "orthogonal")(hidden)
    heads = [_dense(outputs, None, name, seed, "orthogonal") for name in ("mean", "variance")]
    return keras.Model(inputs, [head(hidden) for head in heads])


def recurrent_encoder(
    row_dim: int,
    outputs: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps runs of rows [B, N, row_dim] and states [B, H] to what they say, and states after them.

    The first is [B, outputs]. H is the last of the sizes.
    """
    rows, state = keras.Input([None, row_dim]), keras.Input([hidden_sizes[-1]])
    cell = keras.layers.GRU(
        hidden_sizes[-1],
        return_state=True,
        name="gru",
        kernel_initializer=keras.initializers.GlorotUniform(seed=int(seed.integers(2**31))),
        recurrent_initializer=keras.initializers.Orthogonal(seed=int(seed.integers(2**31))),
        use_cudnn=False,  # the same numbers everywhere, and XLA knows no such call
    )
    last, after = cell(_hidden(rows, hidden_sizes, seed, initializer), initial_state=state)
    said = _dense(outputs, None, "factor", seed, initializer)(last)
    return keras.Model([rows, state], [said, after])


def plain(
    size: int,
    outputs: int,
    name: str,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    initializer: str = "glorot",
) -> keras.Model:
    """Maps [B, size] to [B, outputs] by hidden layers and a linear one of this name."""
    inputs = keras.Input([size])
    hidden = _hidden(inputs, hidden_sizes, seed, initializer)
    return keras.Model(inputs, _dense(outputs, None, name, seed, initializer)(hidden))
