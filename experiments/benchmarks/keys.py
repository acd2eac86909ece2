"""The numbers that the benchmark reports, and how each follows from what was measured."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.arithmetic import cycle_limit_s, ddpg_update_flop

Measured = Mapping[str, Mapping[str, Any]]
"""What one repetition measured, by measurement and quantity."""

WIDEST_SPREAD = 0.2
"""Largest distance of lowest and highest repetition, over the median, of a number to quote."""


class Key(NamedTuple):
    """One reported number."""

    unit: str
    better: str  # higher or lower
    needs: tuple[str, ...]  # measurements; first the one that may not be possible here
    value: Callable[[Measured], float]
    meaning: str


def _of_peak(measurement: str, peak: str = "peak") -> Callable[[Measured], float]:
    def value(measured: Measured) -> float:
        found = measured[measurement]
        return (
            float(found["updates_per_s"]) * ddpg_update_flop() / float(found[f"{peak}_flop_per_s"])
        )

    return value


def _one(measurement: str, quantity: str) -> Callable[[Measured], float]:
    return lambda measured: float(measured[measurement][quantity])


def _ratio(above: tuple[str, str], below: tuple[str, str]) -> Callable[[Measured], float]:
    return lambda measured: _one(*above)(measured) / _one(*below)(measured)


def _cycle_over_limit(measured: Measured) -> float:
    limit = cycle_limit_s(
        _one("simulation", "mj_step_per_s")(measured),
        _one("update_1t", "peak_flop_per_s")(measured),
    )
    return _one("ranks", "cycle_s")(measured) / limit


_OUR_STEPS = ("simulation", "env_steps_per_s")

KEYS: dict[str, Key] = {
    "env_fetch_vs_gymnasium": Key(
        "x",
        "higher",
        ("simulation",),
        _ratio(_OUR_STEPS, ("simulation", "gymnasium_steps_per_s")),
        "our environment steps/s over gymnasium.make's, FetchPush-v4, resets included",
    ),
    "env_fetch_vs_mjstep": Key(
        "x",
        "higher",
        ("simulation",),
        _ratio(_OUR_STEPS, ("simulation", "mj_step_per_s")),
        "our environment steps/s over those of mj_step(nstep=20) alone, from the same states",
    ),
    "update_vs_peak_1t": Key(
        "x",
        "higher",
        ("update_1t",),
        _of_peak("update_1t"),
        "multiply-adds/s of DDPG updates over the matrix-multiply peak, 1 thread",
    ),
    "update_vs_peak_2t": Key(
        "x",
        "higher",
        ("update_2t",),
        _of_peak("update_2t"),
        "the same with 2 threads, also for the peak",
    ),
    "update_vs_tensorflow_1t": Key(
        "x",
        "higher",
        ("update_1t",),
        _of_peak("update_1t", "tensorflow"),
        "the same over the fastest product by TensorFlow alone, 1 thread",
    ),
    "update_vs_tensorflow_2t": Key(
        "x",
        "higher",
        ("update_2t",),
        _of_peak("update_2t", "tensorflow"),
        "the same with 2 threads, a product on each",
    ),
    "update_vs_sb3_sac": Key(
        "x",
        "higher",
        ("their_sac", "our_sac"),
        _ratio(("our_sac", "updates_per_s"), ("their_sac", "updates_per_s")),
        "our SAC updates/s over Stable-Baselines3's, 2 threads each",
    ),
    "update_vs_sb3_ddpg": Key(
        "x",
        "higher",
        ("their_ddpg", "our_ddpg"),
        _ratio(("our_ddpg", "updates_per_s"), ("their_ddpg", "updates_per_s")),
        "our DDPG updates/s over Stable-Baselines3's, 2 threads each",
    ),
    "mi_update_ms_1t": Key(
        "ms",
        "lower",
        ("music",),
        _one("music", "mi_update_ms"),
        "one update of the statistics network, 256 trajectories of 51 states, 1 thread",
    ),
    "pair_update_ms_1t": Key(
        "ms",
        "lower",
        ("music",),
        _one("music", "pair_update_ms"),
        "policy and statistics network updated together, 1 thread; limit 18 ms",
    ),
    "cycle_vs_limit_np2": Key(
        "x",
        "lower",
        ("simulation", "update_1t", "ranks"),
        _cycle_over_limit,
        "time of a cycle on 2 ranks over that of its physics and matrix products alone",
    ),
    "mpi_overhead_np2": Key(
        "share",
        "lower",
        ("ranks",),
        _one("ranks", "mpi_share"),
        "share of that cycle spent in MPI or waiting for it",
    ),
    "guarded_cycle_np2": Key(
        "x",
        "lower",
        ("guards",),
        _one("guards", "ratio"),
        "time of a cycle on 2 ranks with all guards (finite numbers, equal ranks, watchdog) over "
        "one without; limit 1.02",
    ),
    "startup_help_s": Key("s", "lower", ("help",), _one("help", "seconds"), "music-tf --help"),
    "startup_first_step_s": Key(
        "s",
        "lower",
        ("first_step",),
        _one("first_step", "seconds"),
        "from the start of music-tf train to its first environment step",
    ),
    "memory_mb_per_rank": Key(
        "MB",
        "lower",
        ("memory",),
        _one("memory", "mb"),
        "peak resident memory of a rank, ddpg_music with the laptop preset on 2 ranks",
    ),
}


def measurements(names: Sequence[str]) -> list[str]:
    """Returns what must be measured for these keys, in a fixed order, each once."""
    return list(dict.fromkeys(need for name in names for need in KEYS[name].needs))


def summary(values: Sequence[float]) -> dict[str, float]:
    """Returns median and extremes over repetitions."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def too_wide(record: Mapping[str, Any]) -> list[str]:
    """Returns the keys whose repetitions lie too far apart to be quoted: the machine was busy."""
    return [
        name
        for name in KEYS
        if name in record
        and record[name]["max"] - record[name]["min"] > WIDEST_SPREAD * abs(record[name]["median"])
    ]
