"""A learned prior over skills that favours skills which the discriminator recognises."""

import math

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.losses.prior import learned_prior
from music_tf.types import Metrics

_HORIZON = 1000
"""Time constant of the running means, in updates."""


class LearnedPrior:
    """Running means of the log-likelihood of each of K skills in its own states."""

    def __init__(self, skills: int) -> None:
        self.means = np.zeros([2, skills])
        """Running means over replayed steps, [2, K]: each skill's part of log q, and its share."""

    @property
    def chances(self) -> npt.NDArray[np.float64]:
        """The prior, [K]; a skill without any step counts as recognised at chance level."""
        sums, shares = self.means
        guess = np.full(len(sums), -math.log(len(sums)))
        return learned_prior(np.divide(sums, shares, out=guess, where=shares > 0.0))

    def measures(self, skill: tf.Tensor, likelihood: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns metrics [W] of a minibatch [W, B] for `follow`."""
        sums = tf.reduce_mean(skill * likelihood[..., None], axis=1)
        shares = tf.reduce_mean(skill, axis=1)
        return {
            name: parts[:, number]
            for parts, names in zip((sums, shares), self._names, strict=True)
            for number, name in enumerate(names)
        }

    def follow(self, learned: Metrics, updates: int) -> None:
        """Removes the averages of `measures` from the metrics, and updates the running means."""
        fresh = np.array([[learned.pop(name) for name in names] for names in self._names])
        keep = (1.0 - 1.0 / _HORIZON) ** updates
        self.means = keep * self.means + (1.0 - keep) * fresh

    @property
    def _names(self) -> list[list[str]]:
        numbers = range(self.means.shape[1])
        return [[f"skill/{what}_{number}" for number in numbers] for what in ("sum", "share")]
