"""Compares Keras models with their copies in plain numpy, before anything is trained."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from music_tf.config.agents import AgentConfig
from music_tf.errors import FROM_USERS, UsageError
from music_tf.networks.acting import ACTORS, actor_shapes, mlp
from music_tf.networks.embedding import PHI
from music_tf.networks.reward_networks import OWN
from music_tf.types import Array

_COPIED = ("discriminator", PHI)
"""Networks of rewards that a policy applies in plain numpy."""

_ROWS = 16
_ROUNDING = 1e-3
"""Largest difference between outputs of a model and of its copy."""


def check_actor(agent: AgentConfig, actor: Any, input_dim: int, action_dim: int) -> None:
    """Refuses an actor that differs from `networks.acting` at random weights, of fixed seed."""
    option = f"learner of agent: its policy acts by networks.acting.ACTORS[{agent.actor!r}]"
    shapes = actor_shapes(agent.actor, input_dim, agent.actor_layers, action_dim)
    pairs = itertools.zip_longest(
        shapes.items(), zip(actor.weight_names, actor.shapes, strict=True)
    )
    for expected, came in pairs:
        if expected != came:
            raise UsageError(f"{option}: expected the weight {expected}, got {came}")
    kind = ACTORS[agent.actor]
    if kind.mode is None:
        return
    weights, rows = _at_random(actor.shapes, input_dim)
    error = np.abs(kind.act(weights, rows, None) - kind.mode(actor(weights, rows))).max()
    if not error <= _ROUNDING:
        raise UsageError(
            f"{option}: expected the actions of its Keras model, got others by up to {error:.2g}\n"
            "nearest: hidden layers of ReLU, as in networks.models"
        )


def inputs_with_own(inputs: Mapping[str, Any], networks: Iterable[Any]) -> Mapping[str, Any]:
    """Returns `RewardTerm.inputs` with a mark at networks that have no copy in plain numpy."""
    unlike = [each.name for each in networks if each.name in _COPIED and not _is_plain(each)]
    return {**inputs, **{name: {**inputs.get(name, {}), OWN: True} for name in unlike}}


def _is_plain(network: Any) -> bool:
    """Whether `networks.acting.mlp` computes a network: ReLU layers, and a linear one."""
    weights, rows = _at_random(network.shapes, network.shapes[0][0])
    try:
        errors = np.abs(mlp(weights, rows) - network(weights, rows))
    except FROM_USERS:  # it has other inputs or layers
        return False
    return bool(errors.max() <= _ROUNDING)


def _at_random(shapes: Sequence[Sequence[int]], input_dim: int) -> tuple[list[Array], Array]:
    """Returns weights of these shapes and rows of inputs; they are the same each time."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(_ROWS, input_dim)).astype(np.float32)
    weights = [
        (generator.normal(size=shape) / math.sqrt(shape[0])).astype(np.float32) for shape in shapes
    ]
    return weights, rows
