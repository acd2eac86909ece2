"""Hindsight goals for replayed transitions, and priorities of whole episodes.

Goals as in hindsight experience replay (Andrychowicz et al., 2017, arXiv:1707.01495). Priorities
are as in the release of MUSIC (Zhao et al., 2021, arXiv:2103.08107): episodes are drawn in
proportion to the dense rank of their mutual information. No importance weights correct for it.
"""

import numpy as np
import numpy.typing as npt

from music_tf.config.settings import ReplayConfig
from music_tf.types import Array, BoolArray, IntArray


def relabel_probability(config: ReplayConfig) -> float:
    """Returns the chance that a transition gets another goal: k / (k + 1), or 0 for none."""
    if config.strategy == "none":
        return 0.0
    return 1.0 - 1.0 / (1.0 + config.relabel_k)


def choose_goals(
    time: IntArray, length: IntArray, config: ReplayConfig, generator: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Chooses which transitions are relabelled, and with the goal achieved at which state.

    For steps t of episodes of T steps, `time` and `length` [B], states [B] are uniform on
    t + 1..T with `future`, and T with `final`. Draws are the same whatever the strategy.
    """
    relabelled = generator.random(time.shape) < relabel_probability(config)
    offset = (generator.random(time.shape) * (length - time)).astype(np.int64)
    return relabelled, length if config.strategy == "final" else time + 1 + offset


def dense_ranks(values: Array) -> IntArray:
    """Returns ranks [N] of values [N] from 0 on, without gaps; equal values share one."""
    ranks: IntArray = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks


def draw_probabilities(priorities: Array) -> npt.NDArray[np.float64]:
    r"""Returns how likely each episode is drawn, [N], of at least one.

    .. math:: P_i = \rho_i / \sum_j \rho_j

    with the dense ranks rho from 0 on, so that episodes of the lowest priority are never drawn;
    where all priorities are equal, all are as likely.
    """
    ranks = dense_ranks(priorities)
    total = int(ranks.sum())
    return ranks / total if total else np.full(len(ranks), 1.0 / len(ranks))
