"""Takes one measurement in this process: `python -m benchmarks.probe NAME OUT.json full|quick`.

Threads of TensorFlow are fixed once in a process, so that every measurement has its own.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.arithmetic import COMPARED_THREADS
from benchmarks.sizes import FULL, QUICK, Sizes
from music_tf.process import prepare_tensorflow

Measurement = Callable[[Sizes], dict[str, Any]]


def _simulation(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import simulation  # noqa: PLC0415 - one process loads one measurement

    return simulation.measure(sizes)


def _update(threads: int) -> Measurement:
    def measure(sizes: Sizes) -> dict[str, Any]:
        from benchmarks import learning  # noqa: PLC0415

        return learning.measure_update(sizes, threads)

    return measure


def _ours(recipe: str) -> Measurement:
    def measure(sizes: Sizes) -> dict[str, Any]:
        from benchmarks import learning  # noqa: PLC0415

        return learning.measure_ours(sizes, recipe)

    return measure


def _theirs(name: str) -> Measurement:
    def measure(sizes: Sizes) -> dict[str, Any]:
        from benchmarks import baselines  # noqa: PLC0415

        return baselines.measure_theirs(sizes, name)

    return measure


def _music(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import learning  # noqa: PLC0415

    return learning.measure_music(sizes)


def _ranks(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import ranks  # noqa: PLC0415

    return ranks.measure(sizes)


def _guards(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import guards  # noqa: PLC0415

    return guards.measure(sizes)


def _reductions(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import ranks  # noqa: PLC0415

    return ranks.measure_reductions(sizes)


def _memory(sizes: Sizes) -> dict[str, Any]:
    from benchmarks import programs  # noqa: PLC0415

    return programs.measure_memory(sizes)


MEASUREMENTS: dict[str, Measurement] = {
    "simulation": _simulation,
    "update_1t": _update(1),
    "update_2t": _update(2),
    "our_sac": _ours("sac_her"),
    "their_sac": _theirs("SAC"),
    "our_ddpg": _ours("ddpg_her"),
    "their_ddpg": _theirs("DDPG"),
    "music": _music,
    "ranks": _ranks,
    "guards": _guards,
    "reductions": _reductions,
    "memory": _memory,
}

THREADS = {"update_2t": 2} | dict.fromkeys(
    ("our_sac", "their_sac", "our_ddpg", "their_ddpg"), COMPARED_THREADS
)
"""Where it is not one."""


def main(name: str, out: Path, sizes: Sizes) -> None:
    """Writes what a measurement found as JSON."""
    if name == "first_step":
        from benchmarks import programs  # noqa: PLC0415

        programs.train_until_first_step(out)
    os.environ["OMP_NUM_THREADS"] = str(THREADS.get(name, 1))
    prepare_tensorflow()
    found = MEASUREMENTS[name](sizes)
    from music_tf.process import launched_rank  # noqa: PLC0415

    if launched_rank() == 0:
        out.write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), QUICK if sys.argv[3] == "quick" else FULL)
