"""Random streams named by what they are for, so that nothing about them needs to be saved.

A stream depends on (seed, purpose, worker, counter) alone: not on the rank a worker lives on,
nor on what was drawn before. That makes resumed runs exact and rank counts exchangeable.
"""

import hashlib

import numpy as np
import numpy.typing as npt


def stream(seed: int, purpose: str, worker: int = 0, counter: int = 0) -> np.random.Generator:
    """Returns a generator of its own for one purpose, one worker and one count of it.

    Different purposes give independent streams. Workers are those of all ranks; `counter` may be
    the cycle.
    """
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    key = np.array([seed, int.from_bytes(digest, "little")], dtype=np.uint64)
    start = np.array([0, 0, worker, counter], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=start))


def reset_seeds(generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Draws seeds for environment resets, each in 0..2^31 - 1."""
    return generator.integers(2**31, size=count)
