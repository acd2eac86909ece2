"""What an epoch adds up to, cycle by cycle."""

import dataclasses

import numpy as np

from music_tf.distributed import Communicator
from music_tf.types import Metrics


@dataclasses.dataclass
class EpochLog:
    """What an epoch has shown so far, over all ranks; saved when it is interrupted."""

    cycles: int = 0
    totals: list[Metrics] = dataclasses.field(default_factory=list)
    cells: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    succeeded: int = 0
    tried: int = 0
    env_steps: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if len({tuple(cycle) for cycle in self.totals if cycle}) > 1:
            raise ValueError("log.totals: expected the same metrics in each cycle")

    def averages(self) -> Metrics:
        """Returns the means of what was learned over the cycles, extremes apart."""
        totals = [cycle for cycle in self.totals if cycle]
        metrics: Metrics = {}
        for name in totals[0] if totals else ():
            column = [cycle[name] for cycle in totals]
            pick = min if name.endswith("_min") else max if name.endswith("_max") else np.mean
            metrics[name] = float(pick(column))
        for square in [name for name in metrics if name.endswith("_square")]:
            name = square.removesuffix("_square")
            variance = metrics.pop(square) - metrics[f"{name}_mean"] ** 2
            metrics[f"{name}_std"] = float(np.sqrt(max(0.0, variance)))
        return metrics


def over_ranks(metrics: Metrics, comm: Communicator) -> Metrics:
    """Adds up the shares that all ranks have in a cycle; of extremes it takes the furthest."""
    names = list(metrics)
    own = np.array([metrics[name] for name in names])
    lowest = np.array([name.endswith("_min") for name in names])
    highest = np.array([name.endswith("_max") for name in names])
    ends = comm.max_in_place(np.where(lowest, -own, own))
    sums = comm.sum_in_place(own)
    values = np.where(lowest, -ends, np.where(highest, ends, sums))
    return dict(zip(names, map(float, values), strict=True))
