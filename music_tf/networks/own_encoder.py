"""A task encoder that a function of the user makes, as a Keras model."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from music_tf.config.agents import Inference
from music_tf.config.world import load_function
from music_tf.errors import FROM_USERS, UsageError, error_line
from music_tf.networks.parameters import SEED, Network
from music_tf.randomness import seeded_layers
from music_tf.types import Array

_OPTION = "agent.encoder"
_CONTEXTS = (2, 3)
"""Number of contexts, and of rows in each, in the test call of a model."""


@dataclasses.dataclass(frozen=True)
class OwnEncoder(Network):
    """A user's model; its weights are numbered, because names of layers may differ by process."""

    @property
    def weight_names(self) -> list[str]:
        return [f"{self.name}/{n}/{weight.name}" for n, weight in enumerate(self._variables)]

    @property
    def _variables(self) -> list[keras.Variable]:
        weights: list[keras.Variable] = self.model.trainable_variables
        return weights


def own_encoder(
    inference: Inference, row_dim: int, seed: int = 0, learning_rate: float = 0.0
) -> OwnEncoder:
    """Calls `function(row_dim, outputs, sizes, seed)` of the user, and checks its model."""
    make = load_function(inference.encoder, _OPTION)
    try:
        with seeded_layers(np.random.default_rng(seed)):
            model = make(row_dim, inference.outputs, inference.sizes, seed)
        came = _misfit(model, row_dim, inference.outputs)
    except FROM_USERS as error:
        raise UsageError(f"{_OPTION}: {inference.encoder} fails: {error_line(error)}") from error
    if came:
        raise UsageError(
            f"{_OPTION}: {inference.encoder} must return a keras.Model of trainable weights that "
            f"maps contexts [B, N, {row_dim}] to [B, M, {inference.outputs}] in float32, got {came}"
        )
    return OwnEncoder("encoder", model, learning_rate)


def _misfit(model: Any, row_dim: int, outputs: int) -> str:
    """Tries a user's model; describes what does not fit, or returns ""."""
    if not isinstance(model, keras.Model):
        return f"{model!r:.80}"
    model(np.zeros([2, 2 * _CONTEXTS[1], row_dim], np.float32))  # contexts differ in length
    factors = np.asarray(model(np.zeros([*_CONTEXTS, row_dim], np.float32)))
    parts = factors.shape[1:2]  # M
    if factors.shape != (_CONTEXTS[0], *parts, outputs) or parts == (0,):
        return f"{list(factors.shape)} for {[*_CONTEXTS, row_dim]}"
    if factors.dtype != np.float32:
        return str(factors.dtype)
    fixed = [weight.path for weight in model.non_trainable_variables if weight.name != SEED]
    if fixed or not model.trainable_variables:
        trained = len(model.trainable_variables)
        return f"{trained} trainable and {len(fixed)} others {', '.join(fixed)[:80]}"
    return ""


def own_outputs(weights: Mapping[str, Array], inference: Inference, context: Array) -> Array:
    """Returns the outputs [M, outputs] of the user's model for a context [N, C]."""
    # It is the only part of acting that needs TensorFlow.
    network = _remembered(inference, context.shape[-1])
    made = dict(zip(network.weight_names, network.shapes, strict=True))
    stored = {name: array.shape for name, array in weights.items()}
    for name in dict.fromkeys((*made, *stored)):
        if made.get(name) != stored.get(name):  # as after an edit of the function
            raise UsageError(
                f"{_OPTION}: {inference.encoder} makes another model than the one that was "
                f"trained: {name}: expected {made.get(name)}, found {stored.get(name)} in the "
                "checkpoint\nload the run with the function as it was in training"
            )
    factors = network([weights[name] for name in network.weight_names], context[None])
    return np.asarray(factors[0])


_remembered = functools.lru_cache(maxsize=8)(own_encoder)
