"""Draws of conditions, the inputs that select behaviour: skills, latents and directions."""

import math

import numpy as np

from music_tf.config.conditioning import ConditionConfig
from music_tf.errors import UsageError
from music_tf.types import Array


def continuous_conditions(
    config: ConditionConfig, generator: np.random.Generator, count: int
) -> Array:
    """Draws conditions [E, K]; of several groups, one at random lies in a ball of its own."""
    if config.kind == "belief":
        raise UsageError(
            "condition.kind: a belief is inferred from episodes of a task and cannot be drawn\n"
            "music-tf evaluate RUN measures such a run, and load_policy(RUN) lets it act"
        )
    shape = (count, (config.size or 1) // config.groups)
    if config.kind == "box":
        return generator.uniform(-1.0, 1.0, shape).astype(np.float32)
    drawn = generator.standard_normal(shape)
    if config.kind in ("ball", "sphere"):
        drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
    if config.kind == "ball":
        drawn *= generator.random((count, 1))
    if config.groups > 1:
        chosen = np.eye(config.groups)[generator.integers(config.groups, size=count)]
        drawn = (chosen[:, :, None] * drawn[:, None]).reshape(count, -1)
    return drawn.astype(np.float32)


def fresh_conditions(
    config: ConditionConfig,
    size: int,
    generator: np.random.Generator,
    shape: tuple[int, ...],
    chances: Array | None = None,
) -> Array:
    """Draws conditions [..., K] as exploring episodes have them, one-hot ones by `chances` [K]."""
    if config.kind == "one_hot":
        p = None if chances is None else chances / chances.sum(dtype=np.float64)
        return np.eye(size, dtype=np.float32)[generator.choice(size, shape, p=p)]
    return continuous_conditions(config, generator, math.prod(shape)).reshape(*shape, size)
