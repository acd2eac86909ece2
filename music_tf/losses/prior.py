"""Priors over skills, in numpy: needs no TensorFlow."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def learned_prior(log_likelihood: npt.ArrayLike) -> Numbers:
    r"""Prior over skills that favours those which are recognised.

    .. math:: p(z) \propto \exp(E_{s \sim \pi_z}[\log q(z | s)])

    That of variational intrinsic control (arXiv:1611.07507), which DIAYN (arXiv:1802.06070)
    compares itself with.

    Args:
        log_likelihood: The expectation for each skill in nats, [K].

    Returns:
        Chances that add up to 1, [K].
    """
    mean = np.asarray(log_likelihood, np.float64)
    likely = np.exp(mean - mean.max())
    prior: Numbers = likely / likely.sum()
    return prior


def effective_skills(prior: npt.ArrayLike) -> float:
    r"""How many equally likely skills have the entropy of chances [K]: from 1 to K.

    .. math:: \exp(-\sum_z p(z) \log p(z))
    """
    chances = np.asarray(prior, np.float64)
    some = chances[chances > 0.0]
    return float(np.exp(-np.sum(some * np.log(some))))
