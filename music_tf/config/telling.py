"""What says, an epoch at a time, whether a run learns what it is paid for."""

from collections.abc import Mapping
from typing import NamedTuple

INFORMATION = "eval/information"
_SMALL = 0.1
"""Numbers below it are shown with one more digit."""


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
        """Returns it as the progress line has it; nothing where a row has no value.

        The value of random actions stands in brackets.
        """
        value = row.get(self.metric)
        if value is None:
            return ""
        text, beside = f"{self.label} {_short(value)}", row.get(self.random)
        if beside is not None:
            return f"{text} ({beside:.2f})"
        return text if self.chance is None else f"{text} (chance {self.chance:.3g})"

    @property
    def explained(self) -> str:
        """A word for scale, with the unit where it does not say that."""
        unit = f"in {self.unit}" if self.unit and self.unit not in self.scale.split() else ""
        return ", ".join(filter(None, (self.scale, unit)))


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= _SMALL else f"{value:.3f}"
