"""Hindsight relabelling (Andrychowicz et al., 2017, arXiv:1707.01495)."""

import numpy as np

from music_tf.config.settings import ReplayConfig
from music_tf.types import BoolArray, IntArray


def relabel_probability(config: ReplayConfig) -> float:
    """Returns the chance that a transition gets another goal: k / (k + 1), or 0 for none."""
    if config.strategy == "none":
        return 0.0
    return 1.0 - 1.0 / (1.0 + config.relabel_k)


def choose_goals(
    time: IntArray, length: IntArray, config: ReplayConfig, generator: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Chooses which transitions are relabelled, and with the goal achieved at which state.

    Args:
        time: Index t of each step within its episode, shape [B].
        length: Steps T of that episode, shape [B].
        config: Strategy and ratio.
        generator: Source of randomness; always drawn from alike, whatever the strategy.

    Returns:
        The relabelled ones, shape [B], and a state index, shape [B]: for `future` uniform on
        t + 1..T, for `final` T.
    """
    relabelled = generator.random(time.shape) < relabel_probability(config)
    offset = (generator.random(time.shape) * (length - time)).astype(np.int64)
    return relabelled, length if config.strategy == "final" else time + 1 + offset
