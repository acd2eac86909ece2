"""Metrics that show in each epoch whether a run learns what its reward asks for."""

from collections.abc import Mapping
from typing import NamedTuple

INFORMATION = "eval/information"
_SMALL = 0.1
"""Numbers below it are shown with one more digit."""
MOTION, SUCCESS = "eval/object_comotion_m", "eval/success_rate"
LEVELS = {MOTION: (0.2, "control"), SUCCESS: (0.9, "success")}
"""From which on a metric counts as what; the first in metres, of an object on its support."""
_DEVIATIONS = 2.262
"""Standard errors of a mean of ten numbers in half of its 95 % interval (Student's t)."""


class KeyMetric(NamedTuple):
    """A metric to follow, and the values to compare it with."""

    metric: str  # column of `metrics.csv`
    label: str  # its name on the progress line
    unit: str = ""
    random: str = ""  # the same metric for random actions, if there is one
    chance: float | None = None  # value of a random guess, if known
    scale: str = ""  # a word for scale, as in `0.2 m is control`
    trained: str = ""  # the same of training, or its reward, for epochs without an evaluation
    level: tuple[float, str] | None = None  # from which on it counts as what, if that is known

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

    def judged(self, value: float, random: float, error: float | None) -> str:
        """Returns what the end of a run says; `error` is that of the difference from random."""
        beside = "above random" if value > random else "below random"
        if abs(value - random) <= _DEVIATIONS * (error or 0.0):
            beside = "not distinguishable from random"
        if self.level is not None:
            level, what = self.level
            beside = f"{what} ({level:g})" if value >= level else f"no {what} yet ({level:g})"
            if what == self.label:
                beside = f"{'at least' if value >= level else 'not yet'} {level:g}"
        text = " ".join(filter(None, (self.label, _short(value), self.unit)))
        judgement = "" if self.level is None and error is None else f": {beside}"
        return f"{text} (random {_short(random)}){judgement}"

    @property
    def explained(self) -> str:
        """`scale`, and the unit unless `scale` names it."""
        unit = f"in {self.unit}" if self.unit and self.unit not in self.scale.split() else ""
        return ", ".join(filter(None, (self.scale, unit)))


def _short(value: float) -> str:
    return f"{value:z.2f}" if abs(value) >= _SMALL else f"{value:z.3f}"
