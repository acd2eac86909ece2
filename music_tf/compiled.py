"""How TensorFlow runs what learns: as compiled graphs, with operations side by side."""

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


def limit_threads(threads: int) -> None:
    """Gives TensorFlow this many threads, once per process and before it computes anything.

    They run independent operations side by side, such as the losses of actor, critics and
    statistics network, and do not share the work of a single one: products of 256 rows are too
    small for that. So the numbers do not depend on how many there are.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
