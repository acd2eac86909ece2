"""Counters of a run, and the log of its current epoch."""

import dataclasses

import numpy as np

from music_tf.distributed import Communicator
from music_tf.types import Metrics


def is_lowest(name: str) -> bool:
    """Whether a metric is the lowest reward of a term; terms may call their means alike."""
    return name.startswith("reward/") and name.endswith("_min")


def is_highest(name: str) -> bool:
    return name.startswith("reward/") and name.endswith("_max")


@dataclasses.dataclass
class Counters:
    """Progress of a run over all ranks; with the seed it determines all random streams."""

    epoch: int = 0
    cycle: int = 0
    env_steps: int = 0
    episodes: int = 0
    episodes_cut: int = 0  # unfinished when an epoch ended
    updates: int = 0
    elapsed_s: float = 0.0  # of playing and learning, by each rank's own clock
    wall_s: float = 0.0  # since the launch; both include the time before a resume


@dataclasses.dataclass
class EpochLog:
    """Metrics of the current epoch over all ranks; saved when the epoch is interrupted."""

    cycles: int = 0
    totals: list[Metrics] = dataclasses.field(default_factory=list)
    cells: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    succeeded: int = 0
    tried: int = 0
    env_steps: int = 0
    updates: int = 0
    seconds: float = 0.0

    def averages(self) -> Metrics:
        """Returns means over cycles; of rewards also extremes and, from squares, deviations."""
        columns: dict[str, list[float]] = {}
        for cycle in self.totals:
            for name, value in cycle.items():
                columns.setdefault(name, []).append(value)
        metrics: Metrics = {}
        for name, column in columns.items():
            pick = min if is_lowest(name) else max if is_highest(name) else np.mean
            metrics[name] = float(pick(column))
        for square in [name for name in metrics if name.endswith("_square")]:
            name = square.removesuffix("_square")
            if f"{name}_mean" in metrics:
                variance = metrics.pop(square) - metrics[f"{name}_mean"] ** 2
                metrics[f"{name}_std"] = float(np.sqrt(max(0.0, variance)))
        return metrics


def over_ranks(metrics: Metrics, comm: Communicator) -> Metrics:
    """Sums metrics over ranks; of lowest and highest rewards it takes the extremes."""
    names = list(metrics)
    of_rank = np.array([metrics[name] for name in names])
    lowest = np.array([is_lowest(name) for name in names])
    highest = np.array([is_highest(name) for name in names])
    ends = comm.max_in_place(np.where(lowest, -of_rank, of_rank))
    sums = comm.sum_in_place(of_rank)
    values = np.where(lowest, -ends, np.where(highest, ends, sums))
    return dict(zip(names, map(float, values), strict=True))
