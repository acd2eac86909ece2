"""Distances to nearest neighbours, for rewards without a network."""

import functools
import math
from collections.abc import Sequence

import tensorflow as tf

FAR = 1e6
"""Value of every column of a missing row, further away than any robot gets."""
_FEW_COLUMNS, _LONGEST_LIST = 8, 5


def kth_nearest(query: tf.Tensor, rows: tf.Tensor, k: int) -> tf.Tensor:
    r"""Returns the distance of each query to its k-th nearest row, [W, B].

    .. math:: D_k(x, S) = \lVert x - S_{(k)} \rVert_2

    This is a particle estimate of entropy, up to a logarithm and constants. With few columns, the
    differences are computed column by column: in float32 the expansion into squares and a product
    has errors of centimetres for descriptors 60 m from the origin.

    Args:
        query: Points x, [W, B, D].
        rows: Points S of each worker, [W, N, D]; missing rows are `FAR`.
        k: From 1 to N; a query that is among the rows is its own nearest neighbour.

    Raises:
        ValueError: Shapes do not fit, or k is out of range.
    """
    query.shape.assert_has_rank(3)
    rows.shape.assert_is_compatible_with([query.shape[0], None, query.shape[-1]])
    few = query.shape[-1] <= _FEW_COLUMNS
    squares = _differences(query, rows) if few else _products(query, rows)  # [N, W, B]
    return tf.sqrt(tf.maximum(_kth_smallest(squares, k), 0.0))


def kth_nearest_in_time(query: tf.Tensor, table: tf.Tensor, time: tf.Tensor, k: int) -> tf.Tensor:
    """Returns the distance of each query to its k-th nearest row of the same time step, [W, B].

    Args:
        query: Points, [W, B, D].
        table: Rows of each time step of an episode, [W, T, N, D].
        time: Time step of each query, [W, B], in [0, T).
        k: From 1 to N.

    Raises:
        ValueError: Shapes do not fit, or k is out of range.
    """
    time.shape.assert_is_compatible_with(query.shape[:2])
    table.shape.assert_is_compatible_with([query.shape[0], None, None, query.shape[-1]])
    rows = tf.gather(table, time, batch_dims=1)  # [W, B, N, D]
    squares = tf.reduce_sum(tf.square(query[..., None, :] - rows), axis=-1)
    return tf.sqrt(_kth_smallest(tf.transpose(squares, [2, 0, 1]), k))


def _differences(query: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns squared distances of queries [W, B, D] from rows [W, N, D], shape [N, W, B]."""
    rows = tf.transpose(rows, [1, 0, 2])
    columns = [
        tf.math.squared_difference(rows[..., column, None], query[..., column])
        for column in range(query.shape[-1])
    ]
    return functools.reduce(tf.add, columns)


def _products(query: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns `_differences` by a matrix product: less exact, faster for many columns."""
    centre = tf.reduce_mean(query, axis=-2, keepdims=True)
    query, rows = query - centre, rows - centre
    squares = (
        tf.reduce_sum(rows * rows, -1)[..., :, None]
        + tf.reduce_sum(query * query, -1)[..., None, :]
        - 2.0 * tf.matmul(rows, query, transpose_b=True)
    )
    return tf.transpose(squares, [1, 0, 2])


def _kth_smallest(values: tf.Tensor, k: int) -> tf.Tensor:
    """Returns the k-th smallest value along the first axis.

    For small k it repeatedly merges two halves of sorted lists, by minima and maxima of whole
    arrays, which is faster than sorting each row.
    """
    count = values.shape[0]
    if not 1 <= k <= count:
        raise ValueError(f"k: expected a number in [1, {count}], got {k}")
    if k > _LONGEST_LIST:
        rows = tf.transpose(values, [*range(1, values.shape.rank), 0])
        return -tf.math.top_k(-rows, k).values[..., -1]
    missing = 2 ** math.ceil(math.log2(count)) - count
    if missing:
        ends = [[0, missing], *([0, 0] for _ in values.shape[1:])]
        values = tf.pad(values, ends, constant_values=float("inf"))
    sorted_lists = [values]
    while sorted_lists[0].shape[0] > 1:
        first, second = zip(*(tf.split(part, 2) for part in sorted_lists), strict=True)
        sorted_lists = _merged(first, second, k)
    return sorted_lists[k - 1][0]


def _merged(first: Sequence[tf.Tensor], second: Sequence[tf.Tensor], k: int) -> list[tf.Tensor]:
    """Returns the k smallest values of two sorted lists, sorted, or all of fewer values.

    The first list followed by the reversed second one is bitonic, and so are the minima of pairs
    where it is cut to k. A bitonic sequence is sorted by comparisons over halving distances
    (Batcher, 1968, Sorting networks and their applications), padded in front with the smallest
    value to a power of two.
    """
    size = min(k, len(first) + len(second))
    merged = [
        functools.reduce(tf.minimum, [*first[n : n + 1], *second[size - 1 - n : size - n]])
        for n in range(size)
    ]
    whole = 2 ** math.ceil(math.log2(size))
    gap = whole // 2
    while gap:
        for n in range(size - gap):
            if not (n + whole - size) & gap:
                low, high = merged[n], merged[n + gap]
                merged[n], merged[n + gap] = tf.minimum(low, high), tf.maximum(low, high)
        gap //= 2
    return merged
