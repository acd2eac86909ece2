"""The cores and the memory of this machine, and how ranks share them."""

import math
import os
from pathlib import Path


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def threads_per_rank(asked: int, ranks: int, actors: int = 0) -> int:
    """Returns the threads asked for; for 0 a default: 1 if several of `ranks` learn.

    A single learner has all cores except those of its actors, but at least two beside actors.
    """
    cores = available_cores()
    return asked or (1 if ranks > 1 else max(2, cores - actors) if actors else cores)


def available_memory() -> float:
    """Returns the free memory of this machine in bytes, with swap; infinity if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return 1024.0 * (sizes["MemAvailable"] + sizes.get("SwapFree", 0))
    except (OSError, ValueError, KeyError, IndexError):
        return math.inf
