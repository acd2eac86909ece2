"""The running average that public code of DIAYN logs."""

import numpy as np
import numpy.typing as npt

KEPT = 0.99
"""Weight of the old average after each episode."""


class RunningAverage:
    """Exponential average over episodes that starts at the first value, as PyTorch DIAYN logs it.

    If several episodes end between two values, each adds the mean since the last one before them.
    """

    def __init__(self) -> None:
        self.state: npt.NDArray[np.float64] = np.zeros(5)
        """Average; 1 if it has begun; sum and number of values since; number of episodes then."""

    def follow(self, value: float, episodes: int) -> float | None:
        """Takes a value and the number of episodes so far; returns the average, if there is one."""
        average, begun, total, count, before = self.state
        total, count = total + value, count + 1.0
        if episodes > before:
            kept = begun * KEPT ** (episodes - before)
            average, begun = kept * average + (1.0 - kept) * total / count, 1.0
            total = count = 0.0
        self.state = np.array([average, begun, total, count, episodes])
        return float(average) if begun else None
