"""Rewards without a unit, and the gain that brings them to a scale."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from music_tf.config.terms import PaidConfig
from music_tf.intrinsic.base import Feed, Mixing, RewardTerm, TermContext
from music_tf.types import Metrics, Transition

_HORIZON = 1000
"""Updates that a running mean looks back."""
_FINEST = 1e-6
"""Single precision cannot tell a smaller raw reward from none."""


class PaidTerm(RewardTerm):
    r"""Pays a raw reward m by a gain c: given, or `auto`, so that it does not matter in which unit.

    With `auto`, c follows a running mean of the positive part of m over minibatches, before it is
    clipped or logged. So the mean of c m is what `mean` says. Pay for a rare step sinks as it gets
    frequent. Until there is a mean, c is 1.

    .. math:: c = \bar r / E[\max(m, 0)]

    A subclass returns what `scaled_by` makes of its raw reward.
    """

    def __init__(self, config: PaidConfig, context: TermContext, own: float | None = None) -> None:
        """Takes the settings, and the gain of the environment's own, for where they leave it."""
        super().__init__(config, context)
        gain = own if config.gain is None else config.gain
        fixed = gain if isinstance(gain, int | float) else None
        scale = 1.0 if fixed is None else fixed
        self.mixing = Mixing(scale, config.clip, config.shift, config.weight, config.pay)
        self._wanted = config.mean
        self._mean, self._gain = config.measured
        self._running = np.zeros(2) if fixed is None else None
        """Weighted sum of means, and of their weights."""

    @property
    def gain(self) -> float:
        """Reward per unit of the raw reward at present."""
        if self._running is None:
            return self.mixing.scale
        total, weights = self._running
        return float(self._wanted / max(total / weights, _FINEST)) if weights else 1.0

    def gain_feed(self, *shape: int) -> dict[str, np.ndarray]:
        """Returns the present gain as a feed has it, where it is `auto`."""
        return {} if self._running is None else {"gain": np.full(shape, self.gain, np.float32)}

    def scaled_by(self, raw: tf.Tensor, feed: Feed) -> tf.Tensor:
        """Returns raw rewards [W, B] times the gain of the feed, where it is `auto`."""
        return raw if self._running is None else raw * feed["gain"][:, None]

    def steady_feed(self, workers: int) -> Feed:
        return {name: tf.constant(values) for name, values in self.gain_feed(workers).items()}

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        """Returns means of the positive part of raw rewards, [W], where the gain follows them."""
        if self._running is None:
            return {}
        return {self._mean: tf.reduce_mean(tf.nn.relu(reward), axis=-1) / feed["gain"]}

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Lets the gain follow what some updates measured, and returns it."""
        if self._running is None or self._mean not in learned:
            return {}
        keep = (1.0 - 1.0 / _HORIZON) ** updates
        self._running *= keep
        self._running += (1.0 - keep) * np.array([learned[self._mean], 1.0])
        return {self._gain: self.gain}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the scales of inputs, and the running mean that the gain follows."""
        kept = {} if self._running is None else {f"scales/{self.name}": self._running.copy()}
        return super().shared() | kept

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what `shared` of an earlier run returned."""
        super().load(shared)
        if self._running is not None and f"scales/{self.name}" in shared:
            self._running[:] = shared[f"scales/{self.name}"]
