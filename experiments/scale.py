"""How a training cycle grows with the ranks: `python -m experiments.scale`.

Measures a cycle of 1, 2 and 4 ranks with one worker each, in turns, and the all-reduce of their
networks; on a machine with fewer cores the ranks share them. A model is fitted to 1 and 2 ranks:

    cycle(P) = alone * turns(P) * crowd * (1 + spread * slowest(P)) + updates * reduce(P)
    reduce(P) = within a node + 2 (N - 1) / N * bytes / bandwidth + 2 ceil(log2 N) * latency

`alone` is a rank that has the machine to itself, `turns` the ranks that share a core, `crowd` what
ranks side by side lose to each other (1 for one rank), `spread` the deviation of a cycle over its
mean, `slowest(P)` how many deviations the slowest of P equal normal durations lies above the
mean. 4 ranks are not used in the fit: they are its test. Then it predicts N nodes of 16 ranks
with a core each on 10 GbE (1.25 GB/s, 30 us a message), ranks of a node first reduced over shared
memory in log2(16) rounds of what two ranks take here.

With `--actors` it is about a learner with actors: what `Cycle` predicts beside a simulation of many
cycles, and both beside 4 real actors and a learner that sleep in place of acting and learning.

With `--network` it is about two hosts with 1 Gbit/s between them, made of network namespaces as
root: a cycle of `ddpg_her` on FetchPush, by a learner with two actors and by two equal ranks, on
one of the hosts and on both in turn.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from experiments.benchmark import FULL, NETWORKS, header, sizes_of, take
from music_tf.errors import EnvironmentFault
from music_tf.process.children import run_command
from music_tf.process.machine import available_cores
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import read_result
from tests.kit.hosts import Hosts

MEASURED = (1, 2, 4)
PREDICTED = (16, 64, 256)
RANKS_PER_NODE = 16
BANDWIDTH, LATENCY = 1.25e9, 30e-6
BYTES = 4 * NETWORKS
ACTORS = (4, 8, 16, 32)
SIMULATED = 20_000
"""Cycles of a simulation."""

RATE = "1gbit"
PLACES = {
    "learner, 2 actors": (("node1:3", "node1:2,node2:1"), ("--threads", "1", "--learners", "1")),
    "2 equal ranks": (("node1:2", "node1:1,node2:1"), ("--threads", "1")),
}
"""By topology: on one host and on both, and what tells ranks so."""


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
    """What is fitted; the module says how it is used."""

    alone_ms: float
    spread: float
    crowd: float
    pair_reduce_ms: float
    """An all-reduce of the networks by two ranks of a node."""


def fit(measured: Mapping[str, Any], cores: int) -> Model:
    """Returns the model that passes through what 1 and 2 ranks take on so many cores."""
    alone, pair = measured["1"], measured["2"]
    each = alone["cycle_ms_each"]
    spread = statistics.stdev(each) / alone["cycle_ms"] if len(each) > 1 else 0.0
    free = alone["cycle_ms"] * max(1.0, 2.0 / cores) * (1.0 + spread * slowest(2))
    crowd = (pair["cycle_ms"] - FULL.updates_per_cycle * pair["reduce_ms"]) / free
    return Model(alone["cycle_ms"], spread, crowd, pair["reduce_ms"])


def slowest(ranks: int) -> float:
    """Returns how many deviations the slowest of `ranks` normal durations lies above the mean."""
    return 0.0 if ranks == 1 else statistics.NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))


def predict(model: Model, ranks: int, cores: int = RANKS_PER_NODE) -> dict[str, float]:
    """Returns the milliseconds of a cycle, and of its reductions.

    Args:
        model: Fitted to this machine.
        ranks: In all.
        cores: Of a node, which takes `RANKS_PER_NODE` ranks.
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


class Cycle(NamedTuple):
    """Milliseconds of the parts of a cycle with a learner; docs/scale.md has the model."""

    acting: float
    """Of an actor, in the mean."""
    spread: float
    """Standard deviation of that over its mean, between actors and from cycle to cycle."""
    learning: float
    messages: float

    @classmethod
    def of_music(cls, workers: int) -> Self:
        """`ddpg_music` on FetchPush, an actor a worker, replay and updates on a GPU: a model.

        The time of an update is linear in its rows, through what was measured on an H200 for 256
        and 4,096 of them (results/gpu_programs.json).
        """
        update = 0.322 + workers * FULL.batch * 0.206e-3
        return cls(2 * 50 * 0.75, 0.058, FULL.updates * update + workers * (2.8 + 0.2), 1.5)

    def predicted(self, actors: int, lag: int) -> float:
        """Returns what the model says."""
        acting = self.acting * (1.0 + self.spread * slowest(actors))
        both = max(acting, self.learning) if lag else acting + self.learning
        return both + self.messages

    def simulated(self, actors: int, lag: int, seed: int = 0) -> float:
        """Returns the mean of many cycles, each as long as its slowest actor takes or longer."""
        normal = np.random.default_rng(seed).standard_normal((SIMULATED, actors))
        acting = self.acting * (1.0 + self.spread * normal.max(axis=1))
        both = np.maximum(acting, self.learning) if lag else acting + self.learning
        return float(np.mean(both)) + self.messages


def with_actors(quick: bool) -> dict[str, Any]:
    """Returns predictions and simulations by actors and lag, and 4 actors that sleep for real."""
    asleep = Cycle(300.0, 0.058, 300.0, 1.5)
    found = take("actors", quick, 1 + ACTORS[0])

    def both(cycle: Cycle, actors: int) -> dict[str, Any]:
        return cycle._asdict() | {
            f"lag {lag}": {
                "predicted_ms": cycle.predicted(actors, lag),
                "simulated_ms": cycle.simulated(actors, lag),
            }
            for lag in (0, 1)
        }

    real = both(asleep, ACTORS[0])
    for lag in (0, 1):
        real[f"lag {lag}"]["measured_ms"] = 1e3 * found[f"lag{lag}_s"]
    modelled = {str(actors): both(Cycle.of_music(actors), actors) for actors in ACTORS}
    return {"4 actors, asleep": real, "ddpg_music on FetchPush, modelled": modelled}


def over_a_network(repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns the milliseconds of a cycle by topology, on one host and on both.

    Raises:
        EnvironmentFault: A run fails.
        OSError: No hosts can be made of namespaces, or their link cannot be limited.
    """
    found: dict[str, dict[str, list[float]]] = {
        topology: {"one host": [], "both": []} for topology in PLACES
    }
    with Hosts() as hosts:
        hosts.slow(RATE)
        for _ in range(repetitions):
            for topology, (places, words) in PLACES.items():
                for place, listed in zip(("one host", "both"), places, strict=True):
                    hosts.listed = ("--hosts", listed)
                    launch = hosts.launch(sys.executable, "-m", "music_tf")
                    taken = cycle_ms(launch, words, 2, quick, hosts.variables)
                    found[topology][place].append(taken)
    return {
        "rate": RATE,
        "cycle_ms_each": found,
        "cycle_ms": {
            topology: {place: statistics.median(each) for place, each in by_place.items()}
            for topology, by_place in found.items()
        },
    }


def cycle_ms(
    launch: Sequence[str],
    words: Sequence[str],
    workers: int,
    quick: bool,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> float:
    """Trains `ddpg_her` on FetchPush for four epochs; returns the median of those but the first.

    Args:
        launch: What starts `music-tf launch` on some ranks.
        words: What tells them who learns, and on what.
        workers: Of the run, each with two rollouts a cycle.
        quick: Whether tiny sizes on a toy will do.
        variables: Of the environment, beside our own.

    Raises:
        EnvironmentFault: The run fails.
    """
    given, cycles = sizes_of(quick), 2 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        task = f"train ddpg_her --env-id {given.memory_env} --workers {workers} --rollouts 2"
        sizes = (
            f"--epochs 4 --cycles {cycles} --updates {given.updates} "
            f"--replay.batch-size {given.batch}"
        )
        said = [*task.split(), *sizes.split(), "--evaluation.episodes", "2", *words]
        done = run_command(
            [*launch, *said, "--run-dir", str(run)],
            seconds=900.0,
            environment={**os.environ, "PYTHONPATH": os.getcwd(), **variables},
        )
        if not done.ok:
            raise EnvironmentFault(f"{' '.join(said)}\nfailed, code {done.code}: {done.reason}")
        rates = read_result(run / CSV_NAME).columns["time/updates_per_second"]
    return float(1e3 * given.updates / np.median(rates[1:]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, fits, predicts, and writes all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--actors", action="store_true", help="a learner with actors instead")
    about.add_argument("--network", action="store_true", help="two hosts instead, as root")
    parser.add_argument("--out", type=Path, help="default experiments/results/scale.json or so")
    given = parser.parse_args(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m experiments.scale", *words])
    result = {"header": header(command, 1 if given.actors else given.repetitions, given.quick)}
    if given.actors:
        name = "actors.json"
        result |= with_actors(given.quick)
    elif given.network:
        name = "network.json"
        result |= over_a_network(given.repetitions, given.quick)
    else:
        name = "scale.json"
        result |= equal_ranks(given.repetitions, given.quick)
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    if not given.quick:
        out = given.out or Path("experiments/results") / name
        out.write_text(text + "\n", encoding="utf-8")


def equal_ranks(repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns what 1, 2 and 4 ranks take, and what follows for many."""
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
