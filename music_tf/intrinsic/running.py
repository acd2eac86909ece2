"""The running average that public codes of DIAYN log."""

import numpy as np
import numpy.typing as npt

KEPT = 0.99
"""Share of the old average that an episode keeps."""


class RunningAverage:
    """An average over episodes that begins with the first value, as the PyTorch DIAYN logs it.

    There an episode counts the mean over its updates. Here several that end between two values
    count the mean over the updates since the last one before them.
    """

    def __init__(self) -> None:
        """Starts without a value."""
        self.state: npt.NDArray[np.float64] = np.zeros(5)
        """Average, 1 once there is one, sum and number of values since, and episodes by then."""

    def follow(self, value: float, episodes: int) -> float | None:
        """Takes a value, and how many episodes have ended by now; returns the average, if any."""
        average, known, total, count, before = self.state
        total, count = total + value, count + 1.0
        if episodes > before:
            kept = known * KEPT ** (episodes - before)
            average, known = kept * average + (1.0 - kept) * total / count, 1.0
            total = count = 0.0
        self.state = np.array([average, known, total, count, episodes])
        return float(average) if known else None
