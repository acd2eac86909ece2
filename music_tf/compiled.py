"""`tf.function` that keeps the type of what it wraps."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import tensorflow as tf

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compiles `function` to a graph; debug eagerly with `tf.config.run_functions_eagerly`.

    XLA is left out: measured on the CPU it does not speed up these networks, and it costs every
    rank 70 MB.

    Args:
        function: Takes and returns tensors or nests of them, always of the same shapes.
    """
    return cast(Callable[Parameters, Result], tf.function(function, autograph=False))
