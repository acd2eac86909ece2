"""Rewards without a natural unit, and the gain that scales them."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from music_tf.config.terms import ScaledConfig
from music_tf.intrinsic.base import Feed, Mixing, RewardTerm, TermContext
from music_tf.types import Metrics, Transition

_HORIZON = 1000
"""Time constant of the running mean, in updates."""
_FINEST = 1e-6
"""Smallest mean raw reward, near the resolution of float32."""


class ScaledTerm(RewardTerm):
    r"""Pays a raw reward m, multiplied by a gain c that is fixed or `auto`.

    .. math:: c = \bar r / E[\max(m, 0)]

    With `auto`, the mean runs over minibatches, and the gain is 1 until there is one. The `reward`
    of a subclass applies `scaled_by` to its raw reward.
    """

    def __init__(
        self, config: ScaledConfig, context: TermContext, usual_gain: float | None = None
    ) -> None:
        super().__init__(config, context)
        gain = usual_gain if config.gain is None else config.gain
        fixed = gain if isinstance(gain, int | float) else None
        scale = 1.0 if fixed is None else fixed
        self.mixing = Mixing(scale, config.clip, config.shift, config.weight, config.pay)
        self._wanted = config.mean
        self._mean, self._gain = config.measured
        self._running = np.zeros(2) if fixed is None else None
        """Weighted sum of means, and sum of the weights."""

    @property
    def gain(self) -> float:
        if self._running is None:
            return self.mixing.scale
        total, weights = self._running
        return float(self._wanted / max(total / weights, _FINEST)) if weights else 1.0

    def gain_feed(self, *shape: int) -> dict[str, np.ndarray]:
        """Returns the current gain for a feed if it is `auto`, else an empty feed."""
        return {} if self._running is None else {"gain": np.full(shape, self.gain, np.float32)}

    def scaled_by(self, raw: tf.Tensor, feed: Feed) -> tf.Tensor:
        """Returns raw rewards [W, B], multiplied by the gain of the feed if it is `auto`."""
        return raw if self._running is None else raw * feed["gain"][:, None]

    def steady_feed(self, workers: int) -> Feed:
        return {name: tf.constant(values) for name, values in self.gain_feed(workers).items()}

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        if self._running is None:
            return {}
        return {self._mean: tf.reduce_mean(tf.nn.relu(reward), axis=-1) / feed["gain"]}

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        if self._running is None or self._mean not in learned:
            return {}
        keep = (1.0 - 1.0 / _HORIZON) ** updates
        self._running *= keep
        self._running += (1.0 - keep) * np.array([learned[self._mean], 1.0])
        return {self._gain: self.gain}

    def shared(self) -> dict[str, np.ndarray]:
        kept = {} if self._running is None else {f"scales/{self.name}": self._running.copy()}
        return super().shared() | kept

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        super().load(shared)
        if self._running is not None and f"scales/{self.name}" in shared:
            self._running[:] = shared[f"scales/{self.name}"]
