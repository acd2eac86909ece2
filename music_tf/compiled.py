"""`tf.function` that keeps the type of what it wraps."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import tensorflow as tf

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(
    function: Callable[Parameters, Result], *, fused: bool = False
) -> Callable[Parameters, Result]:
    """Compiles `function` to a graph; debug eagerly with `tf.config.run_functions_eagerly`.

    Args:
        function: Takes and returns tensors or nests of them, always of the same shapes.
        fused: Hands the graph to XLA. It pays for chains of element-wise operations, not for
            matrix products.
    """
    wrapped = tf.function(function, autograph=False, jit_compile=True if fused else None)
    return cast(Callable[Parameters, Result], wrapped)
