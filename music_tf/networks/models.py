"""The networks of DDPG, SAC, MUSIC and DIAYN.

All kernels are Glorot-uniform, biases zero, hidden layers ReLU, as in OpenAI Baselines' HER.
"""

from collections.abc import Sequence

import keras
import numpy as np

from music_tf.networks.acting import LOG_DEVIATION_RANGE


def _dense(units: int, activation: str | None, name: str, seed: np.random.Generator) -> keras.Layer:
    initializer = keras.initializers.GlorotUniform(seed=int(seed.integers(2**31)))
    return keras.layers.Dense(
        units, activation=activation, name=name, kernel_initializer=initializer
    )


def _hidden(
    inputs: keras.KerasTensor, sizes: Sequence[int], seed: np.random.Generator
) -> keras.KerasTensor:
    for index, units in enumerate(sizes):
        inputs = _dense(units, "relu", f"hidden_{index}", seed)(inputs)
    return inputs


def deterministic_actor(
    input_dim: int, action_dim: int, hidden_sizes: Sequence[int], seed: np.random.Generator
) -> keras.Model:
    """Maps [B, input_dim] to actions in (-1, 1), [B, A]."""
    inputs = keras.Input([input_dim])
    hidden = _hidden(inputs, hidden_sizes, seed)
    return keras.Model(inputs, _dense(action_dim, "tanh", "action", seed)(hidden))


def gaussian_actor(
    input_dim: int,
    action_dim: int,
    hidden_sizes: Sequence[int],
    seed: np.random.Generator,
    linear_features: bool = True,
) -> keras.Model:
    """Maps [B, input_dim] to mean and log-deviation before squashing, each [B, A].

    As in the MUSIC release, a linear layer as wide as the last hidden one stands before the
    heads, unless it is declined, and log-deviations lie in [-5, 2].
    """
    inputs = keras.Input([input_dim])
    hidden = _hidden(inputs, hidden_sizes, seed)
    if linear_features:
        hidden = _dense(hidden_sizes[-1], None, "features", seed)(hidden)
    mean = _dense(action_dim, None, "mean", seed)(hidden)
    squashed = _dense(action_dim, "tanh", "log_deviation", seed)(hidden)
    low, high = LOG_DEVIATION_RANGE
    return keras.Model(inputs, [mean, low + 0.5 * (high - low) * (squashed + 1.0)])


def critic(
    input_dim: int, action_dim: int, hidden_sizes: Sequence[int], seed: np.random.Generator
) -> keras.Model:
    """Maps inputs and actions, joined to [B, input_dim + A], to action values [B, 1]."""
    inputs = keras.Input([input_dim + action_dim])
    hidden = _hidden(inputs, hidden_sizes, seed)
    return keras.Model(inputs, _dense(1, None, "value", seed)(hidden))


def choices(
    input_dim: int, count: int, hidden_sizes: Sequence[int], seed: np.random.Generator
) -> keras.Model:
    """Maps inputs [B, input_dim] to a number for each choice, [B, K]: its logit, or its value."""
    inputs = keras.Input([input_dim])
    hidden = _hidden(inputs, hidden_sizes, seed)
    return keras.Model(inputs, _dense(count, None, "choice", seed)(hidden))


def statistics_network(
    agent_dim: int, surrounding_dim: int, hidden_size: int, seed: np.random.Generator
) -> keras.Model:
    r"""The MINE network T(x, y) of MUSIC: maps [R, agent] and [R, surrounding] to (-1, 1), [R, 1].

    .. math:: T(x, y) = \tanh(v^T \operatorname{relu}(A x + a + B y + b) + c)
    """
    agent = keras.Input([agent_dim])
    surrounding = keras.Input([surrounding_dim])
    joined = keras.layers.add(
        [
            _dense(hidden_size, None, "agent", seed)(agent),
            _dense(hidden_size, None, "surrounding", seed)(surrounding),
        ]
    )
    score = _dense(1, "tanh", "score", seed)(keras.ops.relu(joined))
    return keras.Model([agent, surrounding], score)


def skill_discriminator(
    state_dim: int, skills: int, hidden_sizes: Sequence[int], seed: np.random.Generator
) -> keras.Model:
    """Maps states [B, state_dim] to skill logits [B, K]."""
    inputs = keras.Input([state_dim])
    hidden = _hidden(inputs, hidden_sizes, seed)
    return keras.Model(inputs, _dense(skills, None, "logits", seed)(hidden))
