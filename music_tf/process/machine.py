"""The cores and the memory of this machine, and how ranks share them."""

import math
import os
from pathlib import Path


def available_cores() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def threads_per_rank(threads: int, ranks: int, actors: int = 0) -> int:
    """Threads asked for; else 1 if several ranks learn, all cores but the actors' for one."""
    cores = available_cores()
    return threads or (1 if ranks > 1 else max(2, cores - actors) if actors else cores)


def available_memory() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return 1024.0 * (sizes["MemAvailable"] + sizes.get("SwapFree", 0))
    except (OSError, ValueError, KeyError, IndexError):
        return math.inf
