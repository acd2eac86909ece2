"""How many cores there are, and how many threads a rank may use."""

import os

from music_tf.config.schema import Config


def available_cores() -> int:
    """Returns how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def threads_per_rank(config: Config, ranks: int) -> int:
    """Returns what `threads` says, or all cores of this process for one rank and 1 for several."""
    if config.threads:
        return config.threads
    return available_cores() if ranks == 1 else 1
