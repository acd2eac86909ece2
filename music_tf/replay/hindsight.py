"""Hindsight goals for replayed transitions, and priorities of whole episodes.

Goals as in hindsight experience replay (Andrychowicz et al., 2017, arXiv:1707.01495). Priorities
are as in the release of MUSIC (Zhao et al., 2021, arXiv:2103.08107): episodes are drawn in
proportion to the dense rank of their mutual information, without importance weights.
"""

import numpy as np
import numpy.typing as npt

from music_tf.config.settings import ReplayConfig
from music_tf.types import Array, BoolArray, IntArray, Reach

REACHING = 0.25
"""Share of transitions whose goal is a place of the hand, under `replay.reach`."""
LED = 0.5
"""Share of exploring steps far from the object whose goal is its place."""


def relabel_probability(config: ReplayConfig) -> float:
    """Returns the probability that a transition is relabelled: k / (k + 1), or 0 for none."""
    return 0.0 if config.strategy == "none" else 1.0 - 1.0 / (1.0 + config.relabel_k)


def choose_goals(
    time: IntArray, length: IntArray, config: ReplayConfig, generator: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Draws which steps [B] are relabelled, and states whose achieved goals they get, [B]."""
    relabelled = generator.random(time.shape) < relabel_probability(config)
    # drawn for every strategy, so that what follows is the same
    offset = (generator.random(time.shape) * (length - time)).astype(np.int64)
    return relabelled, length if config.strategy == "final" else time + 1 + offset


def places(
    reach: Reach,
    relabelled: BoolArray,  # [...]
    states: tuple[Array, Array],  # observations before the step, and of relabelling, [..., O]
) -> Array:
    """Returns places [..., H] for the hand: the object's, or later ones of the hand."""
    before, later = states[0][..., list(reach.object)], states[1][..., list(reach.hand)]
    return np.where(relabelled[..., None], later, before)


def draw_probabilities(priorities: Array) -> npt.NDArray[np.float64]:
    """Chances [N] by dense ranks from 0: none for the lowest priority, unless all are equal."""
    ranks = np.unique(priorities, return_inverse=True)[1]
    total = int(ranks.sum())
    return ranks / total if total else np.full(len(ranks), 1.0 / len(ranks))
