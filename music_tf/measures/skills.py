"""What skills are: how far they are told apart, how many there are, where they end."""

import numpy as np
import numpy.typing as npt

from music_tf.types import Array, BoolArray, IntArray

Numbers = npt.NDArray[np.float64]


def kept_steps(length: IntArray, steps: int) -> BoolArray:
    """Returns which of T steps come before the first end of their episode, [E, T]."""
    kept: BoolArray = np.arange(steps) < length[:, None]
    return kept


def diversity_returns(log_likelihood: Array, skill: IntArray, length: IntArray) -> Numbers:
    r"""Returns what skills earn for being told apart, a sum for each episode, [E].

    .. math:: \sum_{t < T_e} \log q(z_e | s_{et}) + \log K

    The prior is subtracted and nothing is clipped, whatever the run is paid (arXiv:1802.06070).
    Guessing is worth 0, and no step more than log K.

    Args:
        log_likelihood: log q of every skill, [E, T, K].
        skill: Which one acted, [E].
        length: Steps that count, [E].
    """
    steps, skills = log_likelihood.shape[1:]
    own = np.take_along_axis(log_likelihood, skill[:, None, None], axis=-1)[..., 0]
    paid: Numbers = own.astype(np.float64) + np.log(skills)
    total: Numbers = np.where(kept_steps(length, steps), paid, 0.0).sum(axis=1)
    return total


def named_shares(log_likelihood: Array, length: IntArray) -> Numbers:
    """Returns in which share of the steps each skill is the most likely one, [K].

    Of episodes of one skill it is a row of the matrix of skills that acted and were named.
    """
    steps, skills = log_likelihood.shape[1:]
    named = log_likelihood.argmax(axis=-1)[kept_steps(length, steps)]
    shares: Numbers = np.bincount(named, minlength=skills) / len(named)
    return shares


def end_distances(ends: Array) -> Numbers:
    """Returns how far the mean ends of any two skills lie apart, [K, K], of ends [K, E, D]."""
    centres = ends.mean(axis=1, dtype=np.float64)
    apart: Numbers = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    return apart
