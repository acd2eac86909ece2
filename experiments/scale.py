"""Measures and models a training cycle by number of ranks: `python -m experiments.scale`.

It measures a cycle of 1, 2 and 4 ranks with one worker each, in turns, and the all-reduce of their
networks; on a machine with fewer cores the ranks share them. A model is fitted to 1 and 2 ranks:

    cycle(P) = alone * turns(P) * crowd * (1 + spread * slowest(P)) + updates * reduce(P)
    reduce(P) = within a node + 2 (N - 1) / N * bytes / bandwidth + 2 ceil(log2 N) * latency

`alone` is the time of a single rank, `turns` the number of ranks per core, `crowd` the slowdown of
ranks side by side (1 for one rank), `spread` the standard deviation of a cycle over its mean, and
`slowest(P)` the expected number of standard deviations of the slowest of P normal durations above
the mean. The fit is tested on 4 ranks. The model then predicts N nodes of 16 ranks with a core each
on 10 GbE (1.25 GB/s, 30 us per message). Ranks of a node are first reduced over shared memory, in
log2(16) rounds with the time of two ranks on this machine.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.benchmark import FULL, NETWORKS, header, take
from music_tf.process.machine import available_cores

MEASURED = (1, 2, 4)
PREDICTED = (16, 64, 256)
RANKS_PER_NODE = 16
BANDWIDTH, LATENCY = 1.25e9, 30e-6
BYTES = 4 * NETWORKS
OUT = Path("experiments/results/scale.json")


def measure(repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns cycles and reductions by number of ranks, in milliseconds."""
    cycles: dict[int, list[float]] = {ranks: [] for ranks in MEASURED}
    for _ in range(repetitions):
        for ranks, found in cycles.items():
            found.append(1e3 * take("ranks", quick, ranks)["cycle_s"])
    measured = {}
    for ranks, found in cycles.items():
        reductions = take("reductions", quick, ranks)
        measured[str(ranks)] = {
            "cycle_ms": statistics.median(found),
            "cycle_ms_each": found,
            "reduce_ms": reductions["networks_ms"],
            "latency_ms": reductions["latency_ms"],
        }
    return measured


class Model(NamedTuple):
    """Fitted parameters of the model above."""

    alone_ms: float
    spread: float
    crowd: float
    pair_reduce_ms: float
    """Milliseconds of an all-reduce of the networks by two ranks of a node."""


def fit(measured: Mapping[str, Any], cores: int) -> Model:
    """Returns the model that fits the times of 1 and 2 ranks on so many cores."""
    alone, pair = measured["1"], measured["2"]
    each = alone["cycle_ms_each"]
    spread = statistics.stdev(each) / alone["cycle_ms"] if len(each) > 1 else 0.0
    free = alone["cycle_ms"] * max(1.0, 2.0 / cores) * (1.0 + spread * slowest(2))
    crowd = (pair["cycle_ms"] - FULL.updates_per_cycle * pair["reduce_ms"]) / free
    return Model(alone["cycle_ms"], spread, crowd, pair["reduce_ms"])


def slowest(ranks: int) -> float:
    """Returns the standard deviations of the slowest of `ranks` normal durations above the mean."""
    return 0.0 if ranks == 1 else statistics.NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))


def predict(model: Model, ranks: int, cores: int = RANKS_PER_NODE) -> dict[str, float]:
    """Returns the milliseconds of a cycle, and of its reductions.

    Args:
        model: Fitted to this machine.
        ranks: On all nodes.
        cores: Of a node, which has `RANKS_PER_NODE` ranks.
    """
    nodes = math.ceil(ranks / RANKS_PER_NODE)
    on_a_node = min(ranks, RANKS_PER_NODE)
    network = 0.0
    if nodes > 1:
        volume = 2.0 * (nodes - 1) / nodes * BYTES / BANDWIDTH
        network = 1e3 * (volume + 2.0 * math.ceil(math.log2(nodes)) * LATENCY)
    within = model.pair_reduce_ms * math.log2(on_a_node)
    reduce_ms = FULL.updates_per_cycle * (within + network)
    own = model.alone_ms * max(1.0, on_a_node / cores) * (model.crowd if ranks > 1 else 1.0)
    return {
        "cycle_ms": own * (1.0 + model.spread * slowest(ranks)) + reduce_ms,
        "reduce_ms": reduce_ms,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, fits, predicts, and writes the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m experiments.scale", *words])
    result = {"header": header(command, given.repetitions, given.quick)}
    result |= equal_ranks(given.repetitions, given.quick)
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    if not given.quick:
        given.out.write_text(text + "\n", encoding="utf-8")


def equal_ranks(repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns the times of 1, 2 and 4 ranks, and the predictions for many."""
    cores = available_cores()
    measured = measure(repetitions, quick)
    model = fit(measured, cores)
    return {
        "cores": cores,
        "measured": measured,
        "model": model._asdict(),
        "modelled": {str(ranks): predict(model, ranks, cores) for ranks in MEASURED},
        "predicted": {str(ranks): predict(model, ranks) for ranks in PREDICTED},
    }


if __name__ == "__main__":
    main()
