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


def effective_number(probabilities: npt.ArrayLike) -> float:
    r"""Returns how many equally likely skills have the same entropy, exp(H), from 1 to K.

    .. math:: \exp(-\sum_z p(z) \log p(z))
    """
    p = np.asarray(probabilities, np.float64)
    return float(np.exp(-np.sum(p[p > 0] * np.log(p[p > 0]))))


def learned_prior(log_likelihood: npt.ArrayLike) -> Numbers:
    r"""Returns the prior that prefers skills which are recognised, [K].

    .. math:: p(z) \propto \exp(E_{s \sim z}[\log q(z | s)])

    That of variational intrinsic control (arXiv:1611.07507), which DIAYN compares itself with.

    Args:
        log_likelihood: Mean of log q(z | s) over the steps of each skill, [K].
    """
    mean = np.asarray(log_likelihood, np.float64)
    weights = np.exp(mean - mean.max())
    prior: Numbers = weights / weights.sum()
    return prior


def end_distances(ends: Array) -> Numbers:
    """Returns how far the mean ends of any two skills lie apart, [K, K], of ends [K, E, D]."""
    centres = ends.mean(axis=1, dtype=np.float64)
    apart: Numbers = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    return apart


def running_average(values: Numbers, counts: IntArray, keep: float = 0.99) -> Numbers:
    """Returns the running average that begins with the first value, as DIAYN's codes log it.

    Args:
        values: One for each epoch, [N].
        counts: Episodes of each epoch; each counts its value once, [N].
        keep: Share of the old average that an episode keeps.
    """
    average, found = float(values[0]), []
    for value, count in zip(values, counts, strict=True):
        kept = keep ** float(count)
        average = kept * average + (1.0 - kept) * float(value)
        found.append(average)
    return np.array(found)
