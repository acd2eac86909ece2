"""The causal influence of candidate actions in plain numpy, for exploration."""

import math
from collections.abc import Mapping

import numpy as np

from music_tf.config.agents import ONE_OF_SOFTPLUS, OUTCOME_VARIANCES
from music_tf.types import Array

INFLUENCE_MODEL = "influence_model"
"""Name of the network that predicts the effect of an action."""


def influences(
    arrays: Mapping[str, Array], states: Array, actions: Array, floor: float = 0.0
) -> Array:
    """`losses.influence.influence_of_actions` in nats, [B, N], of N actions [B, N, A] in states."""
    weights = [array for name, array in arrays.items() if name.startswith(INFLUENCE_MODEL)]
    scale = arrays.get(f"scales/{INFLUENCE_MODEL}")
    seen = states if scale is None else (states - scale[0]) / scale[1]
    alike = np.broadcast_to(seen[:, None], (*actions.shape[:2], seen.shape[-1]))
    rows = np.concatenate([alike, actions], axis=-1).astype(np.float32)
    *hidden, mean_kernel, mean_bias, kernel, bias = weights
    for index in range(0, len(hidden), 2):
        rows = np.tanh(rows @ hidden[index] + hidden[index + 1])
    mean = rows @ mean_kernel + mean_bias  # [B, N, n]
    raw = np.logaddexp(rows @ kernel + bias + np.float32(ONE_OF_SOFTPLUS), np.float32(0.0))
    variance = np.clip(raw + (floor + OUTCOME_VARIANCES[0]), *OUTCOME_VARIANCES)
    return _from_mixture(mean.astype(np.float64), variance.astype(np.float64))


def _from_mixture(mean: np.ndarray, variance: np.ndarray) -> Array:
    """Returns the divergence of each Gaussian [B, N, n] from the mixture of all N, [B, N]."""
    of_i, of_j = variance[:, :, None], variance[:, None]
    squares = np.square(mean[:, :, None] - mean[:, None])
    divergence = 0.5 * ((of_i + squares) / of_j - 1.0 + np.log(of_j / of_i)).sum(axis=-1)
    both = of_i + of_j
    overlap = -0.5 * (np.log(2.0 * math.pi * both) + squares / both).sum(axis=-1)
    most = math.log(mean.shape[1])
    variational = most - _log_sum_exp(-divergence)
    entropy = 0.5 * np.log(2.0 * math.pi * math.e * variance).sum(axis=-1)
    product = most - entropy - _log_sum_exp(overlap)
    return np.asarray(0.5 * (variational + np.maximum(product, 0.0)), np.float32)


def _log_sum_exp(values: np.ndarray) -> np.ndarray:
    most = values.max(axis=-1, keepdims=True)
    return np.asarray(most[..., 0] + np.log(np.exp(values - most).sum(axis=-1)))
