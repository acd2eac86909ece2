"""Rewards without a unit, and the gain that brings them to a scale."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from music_tf.config.settings import PaidConfig
from music_tf.intrinsic.base import Feed, Mixing, RewardTerm, TermContext
from music_tf.types import Metrics, Transition

_HORIZON = 1000
"""Updates that a running mean looks back."""
_FINEST = 1e-6
"""Single precision cannot tell a smaller raw reward from none."""


class PaidTerm(RewardTerm):
    r"""Pays a raw reward m by a gain c: given, or `auto`, so that it does not matter in which unit.

    With `auto`, c follows running means over minibatches of the positive part of m, before it is
    clipped or logged. Until there is one, c is 1.

    .. math:: c = \bar r \frac{1}{E[m]} \quad \text{over all steps, or} \quad
        c = \bar r \frac{E[m]}{E[m^2]} \quad \text{over the paid ones, each counted by its m}

    The first makes the mean of c m what `mean` says: pay for a rare step sinks as it gets frequent.
    The second makes a paid step worth `mean` and lets the sum rise. A subclass returns what
    `scaled_by` makes of its raw reward.
    """

    def __init__(self, config: PaidConfig, context: TermContext, own: float | None = None) -> None:
        """Takes the settings, and the gain of the environment's own, for where they leave it."""
        super().__init__(config, context)
        gain = own if config.gain is None else config.gain
        fixed = gain if isinstance(gain, int | float) else None
        scale = 1.0 if fixed is None else fixed
        self.mixing = Mixing(scale, config.clip, config.shift, config.weight, config.pay)
        self._wanted = config.mean
        self._by_step = config.mean_over == "paid"
        self._mean, self._square, self._gain = config.measured
        self._running = np.zeros(2) if fixed is None else None
        """Weighted sums whose quotient is the mean that the gain follows: above, and below."""

    @property
    def gain(self) -> float:
        """Reward per unit of the raw reward at present."""
        if self._running is None:
            return self.mixing.scale
        above, below = self._running
        return float(self._wanted / max(above / below, _FINEST)) if below else 1.0

    def gain_feed(self, *shape: int) -> dict[str, np.ndarray]:
        """Returns the present gain as a feed has it, where it is `auto`."""
        return {} if self._running is None else {"gain": np.full(shape, self.gain, np.float32)}

    def scaled_by(self, raw: tf.Tensor, feed: Feed) -> tf.Tensor:
        """Returns raw rewards [W, B] times the gain of the feed, where it is `auto`."""
        return raw if self._running is None else raw * feed["gain"][:, None]

    def steady_feed(self, workers: int) -> Feed:
        """Returns the gain, where it is `auto`."""
        return {name: tf.constant(values) for name, values in self.gain_feed(workers).items()}

    def measures(self, reward: tf.Tensor, batch: Transition, feed: Feed) -> Mapping[str, tf.Tensor]:
        """Returns means of the positive part of raw rewards, [W], where the gain follows them."""
        if self._running is None:
            return {}
        positive, gain = tf.nn.relu(reward), feed["gain"]
        measured = {self._mean: tf.reduce_mean(positive, axis=-1) / gain}
        if self._by_step:
            square = tf.reduce_mean(tf.square(positive / gain[:, None]), axis=-1)
            measured[self._square] = square
        return measured

    def adapt(self, learned: Metrics, updates: int, episodes: int = 0) -> Metrics:
        """Lets the gain follow what some updates measured, and returns it."""
        if self._running is None or self._mean not in learned:
            return {}
        mean = learned[self._mean]
        fresh = (learned[self._square], mean) if self._by_step else (mean, 1.0)
        keep = (1.0 - 1.0 / _HORIZON) ** updates
        self._running *= keep
        self._running += (1.0 - keep) * np.array(fresh)
        return {self._gain: self.gain}

    def shared(self) -> dict[str, np.ndarray]:
        """Returns the scales of inputs, and the running means that the gain follows."""
        kept = {} if self._running is None else {f"scales/{self.name}": self._running.copy()}
        return super().shared() | kept

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        """Takes over what `shared` of an earlier run returned."""
        super().load(shared)
        if self._running is not None and f"scales/{self.name}" in shared:
            self._running[:] = shared[f"scales/{self.name}"]
