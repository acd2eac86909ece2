"""What says, an epoch at a time, whether a run learns what it is paid for."""

from collections.abc import Mapping
from typing import NamedTuple

INFORMATION = "eval/information"


class Telling(NamedTuple):
    """A metric that a person can follow, and what its value has to be read beside."""

    metric: str
    """Column of `metrics.csv`."""
    label: str
    """What the progress line calls it."""
    unit: str = ""
    random: str = ""
    """Metric of the same of a policy of random actions, if there is one."""
    chance: float | None = None
    """What guessing comes to, where that is known."""
    scale: str = ""
    """A word for scale, as in `0.2 m is control`."""

    def shown(self, row: Mapping[str, float | None]) -> str:
        """Returns it as the progress line has it; nothing where a row has no value."""
        value = row.get(self.metric)
        if value is None:
            return ""
        text, beside = f"{self.label} {value:.3f}", row.get(self.random)
        if self.unit:
            text += f" {self.unit}"
        if beside is not None:
            return f"{text} (random {beside:.3f})"
        return text if self.chance is None else f"{text} (chance {self.chance:.3g})"

    @property
    def explained(self) -> str:
        """Its label with a word for scale."""
        return f"{self.label} ({self.scale})" if self.scale else self.label
