"""The fastest matrix product that this process can do."""

import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from music_tf.networks.parameters import compiled

_SECONDS = 0.3


class MatrixPeak:
    """The highest rate of square float32 products seen so far, by TensorFlow or numpy."""

    def __init__(self, sizes: Sequence[int], threads: int) -> None:
        """Makes matrices of these sizes and multiplies each once, untimed.

        TensorFlow multiplies a pair on each of its threads at once, numpy shares out one pair.
        """
        generator = np.random.default_rng(0)
        self.flop_per_s = self.tensorflow_flop_per_s = 0.0
        self._pairs = [generator.standard_normal((2, n, n), np.float32) for n in sizes]
        self._threads = threads
        self._tensors = [[tf.constant(pair) for _ in range(threads)] for pair in self._pairs]
        self._product = compiled(lambda pairs: [tf.matmul(pair[0], pair[1]) for pair in pairs])
        for pair in self._tensors:
            self._product(pair)

    def look(self) -> None:
        """Multiplies each size for a moment in both libraries, and keeps the fastest of each."""
        for pair, tensors in zip(self._pairs, self._tensors, strict=True):
            flop = 2.0 * pair.shape[1] ** 3
            out = np.empty_like(pair[0])
            end = time.perf_counter() + _SECONDS / len(self._pairs)
            while time.perf_counter() < end:
                start = time.perf_counter()
                self._product(tensors)
                middle = time.perf_counter()
                np.matmul(pair[0], pair[1], out=out)
                end_of_numpy = time.perf_counter()
                rates = self._threads * flop / (middle - start), flop / (end_of_numpy - middle)
                self.tensorflow_flop_per_s = max(self.tensorflow_flop_per_s, rates[0])
                self.flop_per_s = max(self.flop_per_s, *rates)
