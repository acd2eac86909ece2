"""Search spaces of `music-tf tune`: a small one for each method, or the user's own.

A JSON file has an object for each setting, as in
`{"exploration.noise": {"low": 0.05, "high": 0.4}, "updates": {"choices": [40, 80]}}`.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from music_tf.config.names import suggestion
from music_tf.errors import UsageError
from music_tf.files import read_json
from music_tf.hints import fits

if TYPE_CHECKING:  # an extra
    import optuna

_LARGEST_FILE = 100_000
_DIGITS = 3
_PAIR = 2


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Any number from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    """Whether the search is uniform in the logarithm, as for step sizes."""

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values that must be valid for the setting."""
        return self.low, self.high

    def __contains__(self, value: object) -> bool:
        return fits(value, float) and self.low <= float(value) <= self.high  # type: ignore[arg-type]

    def suggest(self, name: str, trial: "optuna.Trial") -> float:
        return self.rounded(trial.suggest_float(name, self.low, self.high, log=self.log))

    def rounded(self, value: float) -> float:
        """A number to a thousandth of the width of the range, with `log` also of the number."""
        width = self.high - self.low
        size = min(width, value) if self.log else width
        digits = _DIGITS - math.floor(math.log10(size))
        return min(max(round(value, digits), self.low), self.high)


@dataclasses.dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[str | int | float | bool, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.values

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def suggest(self, name: str, trial: "optuna.Trial") -> Any:
        return trial.suggest_categorical(name, self.values)


Space: TypeAlias = Mapping[str, Numbers | Choices]
"""Range of each searched setting, by dotted name."""


@dataclasses.dataclass(frozen=True)
class Method:
    """A recipe that can be tuned."""

    metrics: tuple[str, ...]
    """Columns of `metrics.csv`: the first that a run has is its score, larger is better."""
    space: Space


_STEP_SIZE = Numbers(1e-4, 3e-3, log=True)
_SHARED: Space = {
    "agent.actor_learning_rate": _STEP_SIZE,
    "agent.critic_learning_rate": _STEP_SIZE,
    "replay.batch_size": Choices((64, 128, 256)),
}
_NOISE: Space = {
    "exploration.noise": Numbers(0.05, 0.4),
    "exploration.random_probability": Numbers(0.0, 0.5),
}
METHODS: Mapping[str, Method] = {
    "ddpg_music": Method(
        ("eval/object_comotion_m", "music/bound_heldout"),
        {
            **_SHARED,
            **_NOISE,
            "exploration.random_hold": Choices((1, 2, 4, 8)),
            "music.learning_rate": Numbers(3e-5, 1e-3, log=True),
            "agent.action_l2": Numbers(0.01, 1.0, log=True),
        },
    ),
    "ddpg_her": Method(
        ("eval/success_rate",), {**_SHARED, **_NOISE, "replay.relabel_k": Choices((2, 4, 8))}
    ),
    "sac": Method(
        ("eval/success_rate", "eval/return"),
        {**_SHARED, "agent.polyak": Choices((0.95, 0.98, 0.99, 0.995))},
    ),
    "sac_diayn": Method(
        ("skill/accuracy_heldout",),
        {
            **_SHARED,
            "skill.learning_rate": Numbers(1e-4, 3e-3, log=True),
            "agent.temperature": Numbers(0.01, 1.0, log=True),
        },
    ),
}


def method_of(name: str) -> Method:
    if name not in METHODS:
        raise UsageError(
            f"--method: expected one of {', '.join(METHODS)}, got {name[:80]!r}"
            + suggestion(name, METHODS)
        )
    return METHODS[name]


def read_space(path: Path) -> Space:
    try:
        content = read_json(path, _LARGEST_FILE)
    except (OSError, ValueError) as error:
        raise UsageError(f"--space: {path}: cannot be read ({str(error)[:120]})") from error
    if not isinstance(content, dict) or not content:
        raise UsageError(f"--space: {path}: expected an object with a setting or more")
    return {
        str(name).replace("-", "_"): _dimension(f"{path}: {name}", row)
        for name, row in content.items()
    }


def _dimension(place: str, row: Any) -> Numbers | Choices:
    start = f"--space: {place[:200]}: expected "
    expected = start + '{"low": 0.1, "high": 1}, perhaps with "log": true'
    names = set(row) if isinstance(row, dict) else set()
    if names != {"choices"} and not {"low", "high"} <= names <= {"low", "high", "log"}:
        raise UsageError(f'{expected}, or {{"choices": [1, 2]}}; got {json.dumps(row)[:80]}')
    if "choices" in names:
        values = row["choices"]
        plain = isinstance(values, list) and all(
            isinstance(value, str | int | float) for value in values
        )
        if not plain or len(values) < _PAIR:
            raise UsageError(f"{start}two choices or more, got {json.dumps(values)[:80]}")
        return Choices(tuple(values))
    low, high, log = row["low"], row["high"], row.get("log", False)
    numbers = fits([low, high], list[float]) and math.isfinite(float(high) - float(low))
    if not numbers or not low < high or not isinstance(log, bool) or (log and low <= 0):
        raise UsageError(f"{expected}, low below high, and above 0 with log; got {row!r:.80}")
    return Numbers(float(low), float(high), log)
