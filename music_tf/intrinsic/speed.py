"""The speed of velocity conditions: a setting, or read off the episodes before learning begins."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from music_tf.errors import UsageError
from music_tf.gate import is_count
from music_tf.networks.embedding import SPEED

AUTO = "auto"
_EDGES = np.geomspace(1e-3, 1e3, 1201)
"""Bounds of the lengths, in units of the inputs; shorter steps are rest. Counts are the same
however episodes are spread over ranks, which a mean of lengths is not."""
_FAST, _SHARE = 0.99, 0.7
"""Quantile of the lengths, and the share of it that becomes the speed."""
_LOGGER = logging.getLogger(__name__)


class Speed:
    """Length v of the best step under a condition of length 1, in units of the embedding's inputs.

    With `auto` it follows the fastest steps of the object, or of the hand if that is faster.
    """

    def __init__(
        self, setting: float | Literal["auto"], total: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self.value = tf.Variable(1.0 if setting == AUTO else setting, trainable=False)
        self._total, self._auto = total, setting == AUTO
        self._seen: npt.NDArray[np.int64] | None = None
        """Counts of steps by their length, then of episodes that move the object, and of all; None
        once learning begins."""
        if self._auto:
            self._seen = np.zeros(len(_EDGES) + 3, np.int64)

    @property
    def known(self) -> bool:
        return self._seen is None

    def see(self, lengths: npt.NDArray[np.floating], moved: npt.NDArray[np.bool_]) -> None:
        """Counts the lengths of fresh steps, and which episodes moved; a collective call."""
        if self._seen is None:
            return
        counts = np.bincount(_EDGES.searchsorted(lengths), minlength=len(_EDGES) + 1)
        self._seen += self._total(np.array([*counts, moved.sum(), len(moved)]))
        moving = np.cumsum(self._seen[1:-3])
        if moving[-1]:
            self.value.assign(_SHARE * _EDGES[1 + moving.searchsorted(_FAST * moving[-1])])

    def settle(self) -> float:
        """Returns the speed, which is fixed from now on, if enough episodes moved."""
        speed = float(self.value.numpy())
        if self._seen is not None:
            moved, episodes = self._seen[-2:].tolist()
            if 2 * moved < episodes:
                raise UsageError(
                    "distance.speed: auto reads it off the motion before learning begins, but only "
                    f"{moved} of {episodes} episodes moved what skills are to move\nfor example: "
                    "--distance.speed 0.4, in units of its inputs; or --init-from a run that moves "
                    "it, as of sac_music"
                )
            _LOGGER.info("distance.speed: %.3g, read off %d episodes", speed, episodes)
            self._seen = None
        return speed

    def shared(self) -> dict[str, np.ndarray]:
        return {SPEED: np.asarray(self.value.numpy())}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        if self._auto and SPEED in shared:
            self.value.assign(shared[SPEED])

    def meta(self) -> dict[str, Any]:
        return {} if self._seen is None else {"seen": self._seen.tolist()}

    def load_meta(self, meta: Mapping[str, Any]) -> None:
        seen, size, most = meta.get("seen"), len(_EDGES) + 3, np.iinfo(np.int64).max
        counts = isinstance(seen, list) and len(seen) == size
        if seen is not None and not (counts and all(is_count(n) and n <= most for n in seen)):
            raise ValueError(f"seen: expected {size} counts, found {seen!r:.80}")
        if self._auto:
            self._seen = None if seen is None else np.array(seen, np.int64)
