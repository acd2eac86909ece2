"""How a training cycle grows with the ranks: `python experiments/scale.py`.

Measures a cycle of 1, 2 and 4 ranks with one worker each, and the all-reduce of its networks; on
a machine with fewer cores the ranks share them. Then it predicts clusters from one rank that
has its core to itself:

    cycle(P) = alone * jitter(P) + updates * reduce(P)
    reduce(P) = 2 (N - 1) / N * bytes / bandwidth + 2 ceil(log2 N) * latency

N nodes of 16 ranks on 10 GbE (1.25 GB/s, 30 us a message), ranks of a node first reduced over
shared memory at the speed that was measured here; `jitter` is the mean of the slowest of P equal
normal durations, with the spread of cycles that was measured.
"""

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.arithmetic import UPDATES_PER_CYCLE
from benchmarks.processes import take
from benchmarks.ranks import REDUCED

MEASURED = (1, 2, 4)
PREDICTED = (16, 64, 256)
RANKS_PER_NODE = 16
BANDWIDTH, LATENCY = 1.25e9, 30e-6
BYTES = 4 * REDUCED[-1]


def measure(repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns cycles and reductions by number of ranks, medians and extremes in milliseconds."""
    found: dict[str, Any] = {}
    for ranks in MEASURED:
        cycles = [1e3 * take("ranks", quick, ranks)["cycle_s"] for _ in range(repetitions)]
        reductions = take("reductions", quick, ranks)
        found[str(ranks)] = {
            "cycle_ms": statistics.median(cycles),
            "cycle_ms_min": min(cycles),
            "cycle_ms_max": max(cycles),
            "reduce_ms": reductions[f"reduce_{REDUCED[-1]}_ms"],
            "latency_ms": reductions[f"reduce_{REDUCED[0]}_ms"],
        }
    return found


def slowest(ranks: int) -> float:
    """Returns how many deviations the slowest of `ranks` normal durations lies above the mean."""
    return 0.0 if ranks == 1 else statistics.NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))


def predict(ranks: int, alone_ms: float, spread: float, node_reduce_ms: float) -> dict[str, float]:
    """Returns the milliseconds of a cycle, and of its reductions, on nodes of 16 ranks.

    Args:
        ranks: In all.
        alone_ms: A cycle of one rank on a core of its own.
        spread: Deviation of a rank's cycles over their mean.
        node_reduce_ms: An all-reduce of the networks within a node.
    """
    nodes = math.ceil(ranks / RANKS_PER_NODE)
    network = 0.0
    if nodes > 1:
        volume = 2.0 * (nodes - 1) / nodes * BYTES / BANDWIDTH
        network = 1e3 * (volume + 2.0 * math.ceil(math.log2(nodes)) * LATENCY)
    reduce_ms = UPDATES_PER_CYCLE * (node_reduce_ms + network)
    return {
        "cycle_ms": alone_ms * (1.0 + spread * slowest(ranks)) + reduce_ms,
        "reduce_ms": reduce_ms,
    }


def predictions(measured: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Returns what the model says of `PREDICTED` ranks."""
    alone, pair = measured["1"], measured["2"]
    spread = (alone["cycle_ms_max"] - alone["cycle_ms_min"]) / alone["cycle_ms"] / 2.0
    # Within a node each doubling of the ranks passes the networks on once more.
    node_ms = pair["reduce_ms"] * math.log2(RANKS_PER_NODE)
    return {str(n): predict(n, alone["cycle_ms"], spread, node_ms) for n in PREDICTED}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, predicts, and writes both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/scale.json"))
    given = parser.parse_args(arguments)
    measured = measure(given.repetitions, given.quick)
    result = {
        "cores": len(os.sched_getaffinity(0)),
        "measured": measured,
        "predicted": predictions(measured),
    }
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    if not given.quick:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
