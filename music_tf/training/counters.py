"""How far a run has come, and what an epoch has shown so far."""

import dataclasses

import numpy as np

from music_tf.types import Metrics


@dataclasses.dataclass
class Counters:
    """How far a run has come, over all ranks; with the seed, all that random streams need.

    Ranks agree on all but seconds, which each measures by its own clock: `elapsed_s` of playing and
    learning, `wall_s` since the launch, of what was saved before a resume included. `episodes` came
    to their end, `episodes_cut` were open when an epoch ended.
    """

    epoch: int = 0
    cycle: int = 0
    env_steps: int = 0
    episodes: int = 0
    episodes_cut: int = 0
    updates: int = 0
    elapsed_s: float = 0.0
    wall_s: float = 0.0


@dataclasses.dataclass
class EpochLog:
    """What an epoch has shown so far, over all ranks; saved when it is interrupted."""

    cycles: int = 0
    totals: list[Metrics] = dataclasses.field(default_factory=list)
    cells: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    succeeded: int = 0
    tried: int = 0
    env_steps: int = 0
    updates: int = 0
    seconds: float = 0.0

    def averages(self) -> Metrics:
        """Returns the means of what was learned over the cycles, extremes apart."""
        columns: dict[str, list[float]] = {}
        for cycle in self.totals:
            for name, value in cycle.items():
                columns.setdefault(name, []).append(value)
        metrics: Metrics = {}
        for name, column in columns.items():
            pick = min if name.endswith("_min") else max if name.endswith("_max") else np.mean
            metrics[name] = float(pick(column))
        for square in [name for name in metrics if name.endswith("_square")]:
            name = square.removesuffix("_square")
            variance = metrics.pop(square) - metrics[f"{name}_mean"] ** 2
            metrics[f"{name}_std"] = float(np.sqrt(max(0.0, variance)))
        return metrics
