"""Running mean and deviation of inputs, shared by all workers."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from music_tf.config.settings import NormalizerConfig
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.networks.acting import Moments, NetworkInputs, bounded
from music_tf.types import Array, EnvSpec, all_finite

COLUMNS = "normalizer/reach"
"""Columns of hand and object in a checkpoint, [2, H]."""


class Normalizer:
    """Sums over all rows so far, and the mean and deviation that they give.

    As in OpenAI Baselines' HER, each update adds the *average* over workers of their sums and
    counts, and the initial count is one. With sum S over N rows of W workers, the mean is
    (S / W) / (1 + N / W), so that the prior of zeros weighs as much as W rows.
    """

    def __init__(self, size: int, config: NormalizerConfig, comm: Communicator) -> None:
        self._config = config
        self._comm = comm
        self._totals = np.zeros([2 * size + 1])  # sums, sums of squares, count
        self._totals[-1] = 1.0
        self._recompute()

    def update(self, rows: Array, workers: int) -> None:
        """Adds rows [W, rows, D] of this rank; `workers` counts those of all ranks; collective."""
        clipped = bounded(rows, self._config).astype(np.float64)
        sums = np.concatenate(
            [
                clipped.sum(axis=(0, 1)),
                np.square(clipped).sum(axis=(0, 1)),
                [np.prod(rows.shape[:-1])],
            ]
        )
        added = self._comm.sum_in_place(sums) / workers
        if not all_finite(added):
            text = "non-finite observations or goals reach the running moments"
            raise NumbersFault(text, {"rows": rows, "sums_over_ranks": added})
        self._totals += added
        self._recompute()

    @property
    def state(self) -> npt.NDArray[np.float64]:
        return self._totals.copy()

    @state.setter
    def state(self, totals: npt.NDArray[np.float64]) -> None:
        if totals.shape != self._totals.shape:
            raise ValueError(f"expected totals of shape {self._totals.shape}, got {totals.shape}")
        if not all_finite(totals):
            raise ValueError("expected finite totals")
        self._totals = totals.astype(np.float64)
        self._recompute()

    def _recompute(self) -> None:
        """Computes mean and deviation from the totals; 0 and 1 before the first row."""
        sums, squares = np.split(self._totals[:-1], 2)
        count = self._totals[-1]
        if count <= 1.0:
            self.moments = Moments(np.zeros_like(sums, np.float32), np.ones_like(sums, np.float32))
            return
        mean = sums / count
        variance = np.maximum(self._config.epsilon**2, squares / count - np.square(mean))
        self.moments = Moments(mean.astype(np.float32), np.sqrt(variance).astype(np.float32))


class InputMoments:
    """The running moments of observations and goals."""

    def __init__(
        self, spec: EnvSpec, config: NormalizerConfig, condition: int, comm: Communicator
    ) -> None:
        self._config, self._condition = config, condition
        self.observations = Normalizer(spec.observation_dim, config, comm)
        self.goals = Normalizer(spec.seen_goal, config, comm)
        self._reach = None if spec.reach is None else spec.reach.columns
        self._owners = {"normalizer/observation": self.observations, "normalizer/goal": self.goals}

    @property
    def now(self) -> NetworkInputs:
        observation, goal = self.observations.moments, self.goals.moments
        return NetworkInputs(observation, goal, self._config, self._condition, self._reach)

    def see(self, observations: Array, goals: Array, workers: int) -> None:
        """Adds observations [W, rows, O] and goals or offsets if `normalizer.running`."""
        if not self._config.running:
            return
        self.observations.update(observations, workers)
        self.goals.update(goals, workers)

    def shared(self) -> dict[str, np.ndarray]:
        states = {name: normalizer.state for name, normalizer in self._owners.items()}
        return states if self._reach is None else {**states, COLUMNS: self._reach}

    def load(self, shared: Mapping[str, np.ndarray]) -> None:
        if missing := self.shared().keys() - shared.keys():
            raise ValueError(f"{min(missing)}: missing")
        if self._reach is not None and not np.array_equal(self._reach, shared[COLUMNS]):
            wanted, found = (each.astype(int).tolist() for each in (self._reach, shared[COLUMNS]))
            raise ValueError(f"{COLUMNS}: expected columns {wanted}, found {found}")
        for name, normalizer in self._owners.items():
            try:
                normalizer.state = shared[name]
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
