"""Which episodes are replayed more often: by the rank of a priority, as in MUSIC-p.

The release of MUSIC (Zhao et al., 2021, arXiv:2103.08107) draws episodes in proportion to the
dense rank of their mutual information. No importance weights correct for it.
"""

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, IntArray


def dense_ranks(values: Array) -> IntArray:
    """Returns ranks from 0 on, without gaps; equal values share one.

    Args:
        values: Shape [N].
    """
    ranks: IntArray = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks


def draw_probabilities(priorities: Array) -> npt.NDArray[np.float64]:
    r"""Returns how likely each episode is drawn, shape [N].

    .. math:: P_i = \rho_i / \sum_j \rho_j

    with the dense ranks rho from 0 on, so that episodes of the lowest priority are never drawn;
    where all priorities are equal, all are as likely.

    Args:
        priorities: Shape [N], N at least 1.
    """
    ranks = dense_ranks(priorities)
    total = int(ranks.sum())
    return ranks / total if total else np.full(len(ranks), 1.0 / len(ranks))
