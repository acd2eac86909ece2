"""Random streams named by their purpose, whose state never needs to be saved.

A stream depends on (seed, purpose, worker, counter) alone: not on the rank of the worker, nor on
earlier draws. So resumed runs are exact, and results do not depend on the number of ranks.
"""

import contextlib
import hashlib
import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def stream(seed: int, purpose: str, worker: int = 0, counter: int = 0) -> np.random.Generator:
    """Returns the generator of a purpose, a worker (over all ranks) and a counter, as of cycles."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    key = np.array([seed, int.from_bytes(digest, "little")], dtype=np.uint64)
    start = np.array([0, 0, worker, counter], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=start))


@contextlib.contextmanager
def seeded_layers(generator: np.random.Generator) -> Iterator[None]:
    """Seeds the layers of a user's model that have no seed: Keras then asks Python's `random`."""
    state = random.getstate()
    random.seed(int(generator.integers(2**63)))
    try:
        yield
    finally:
        random.setstate(state)


def reset_seeds(generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Draws seeds for environment resets, each in 0..2^31 - 1."""
    return generator.integers(2**31, size=count)
