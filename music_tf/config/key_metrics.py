"""Metrics that show in each epoch whether a run learns what its reward asks for."""

from collections.abc import Mapping
from typing import NamedTuple

INFORMATION = "eval/information"
_SMALL = 0.1
"""Numbers below it are shown with one more digit."""


class KeyMetric(NamedTuple):
    """A metric to follow, and the values to compare it with."""

    metric: str  # column of `metrics.csv`
    label: str  # its name on the progress line
    unit: str = ""
    random: str = ""  # the same metric for random actions, if there is one
    chance: float | None = None  # value of a random guess, if known
    scale: str = ""  # a word for scale, as in `0.2 m is control`
    trained: str = ""  # the same of training, or its reward, for epochs without an evaluation

    def shown(self, row: Mapping[str, float | None]) -> str:
        """Returns its text on the progress line, that of random actions in brackets, if any."""
        value = row.get(self.metric)
        if value is None:
            training = row.get(self.trained)
            label = self.trained if self.trained.startswith("reward/") else self.label
            return "" if training is None else f"{label} {_short(training)} in training"
        text, beside = f"{self.label} {_short(value)}", row.get(self.random)
        if beside is not None:
            return f"{text} ({beside:z.2f})"
        return text if self.chance is None else f"{text} (chance {self.chance:.3g})"

    @property
    def explained(self) -> str:
        """`scale`, and the unit unless `scale` names it."""
        unit = f"in {self.unit}" if self.unit and self.unit not in self.scale.split() else ""
        return ", ".join(filter(None, (self.scale, unit)))


def _short(value: float) -> str:
    return f"{value:z.2f}" if abs(value) >= _SMALL else f"{value:z.3f}"
