"""Priors over skills, in numpy."""

import numpy as np
import numpy.typing as npt

from music_tf.types import Floats


def learned_prior(log_likelihood: npt.ArrayLike) -> Floats:
    r"""Prior over skills that favours skills which the discriminator recognises.

    .. math:: p(z) \propto \exp(E_{s \sim \pi_z}[\log q(z | s)])

    The prior of variational intrinsic control (arXiv:1611.07507), a baseline in DIAYN
    (arXiv:1802.06070).

    Args:
        log_likelihood: The expectation for each skill in nats, [K].

    Returns:
        Probabilities, [K].
    """
    mean = np.asarray(log_likelihood, np.float64)
    likely = np.exp(mean - mean.max())
    prior: Floats = likely / likely.sum()
    return prior


def effective_skills(prior: npt.ArrayLike) -> float:
    r"""Number of equally likely skills with the same entropy as a prior [K], from 1 to K.

    .. math:: \exp(-\sum_z p(z) \log p(z))
    """
    chances = np.asarray(prior, np.float64)
    some = chances[chances > 0.0]
    return float(np.exp(-np.sum(some * np.log(some))))
