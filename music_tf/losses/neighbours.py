"""Distances to nearest neighbours: a reward that no network has to learn."""

import functools
import math
from collections.abc import Sequence

import tensorflow as tf

FAR = 1e6
"""Where a row lies that is missing, in each column: further than any place that a robot gets to."""
_FEW_COLUMNS, _LONGEST_LIST = 8, 5


def kth_nearest(query: tf.Tensor, rows: tf.Tensor, k: int) -> tf.Tensor:
    r"""Returns how far each query is from the k-th nearest of some rows, [W, B].

    .. math:: D_k(x, S) = \lVert x - S_{(k)} \rVert_2

    That is an estimate of the entropy by particles, up to a logarithm and constants. A few columns
    are subtracted one after the other: in single precision squares and a product are wrong by
    centimetres where descriptors lie 60 m from the origin.

    Args:
        query: Points x, [W, B, D].
        rows: Points S of each worker, [W, N, D]; where fewer are there, the others lie at `FAR`.
        k: From 1 to N; a query that is among the rows is its own nearest neighbour.

    Raises:
        ValueError: Shapes that do not belong together.
    """
    query.shape.assert_has_rank(3)
    rows.shape.assert_is_compatible_with([query.shape[0], None, query.shape[-1]])
    few = query.shape[-1] <= _FEW_COLUMNS
    squares = _differences(query, rows) if few else _products(query, rows)  # [N, W, B]
    return tf.sqrt(tf.maximum(_kth_smallest(squares, k), 0.0))


def kth_nearest_in_time(query: tf.Tensor, table: tf.Tensor, time: tf.Tensor, k: int) -> tf.Tensor:
    """Returns the same, [W, B], but to rows of the query's own time alone.

    Args:
        query: Points, [W, B, D].
        table: Rows of each time of an episode, [W, T, N, D].
        time: Of each query, [W, B], in [0, T).
        k: From 1 to N.

    Raises:
        ValueError: Shapes that do not belong together.
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
    """Returns the same by a matrix product, less exact, and cheaper where columns are many."""
    centre = tf.reduce_mean(query, axis=-2, keepdims=True)
    query, rows = query - centre, rows - centre
    squares = (
        tf.reduce_sum(rows * rows, -1)[..., :, None]
        + tf.reduce_sum(query * query, -1)[..., None, :]
        - 2.0 * tf.matmul(rows, query, transpose_b=True)
    )
    return tf.transpose(squares, [1, 0, 2])


def _kth_smallest(values: tf.Tensor, k: int) -> tf.Tensor:
    """Returns the k-th smallest along the first axis.

    For small k the values are folded: each half of them as sorted lists of k, of which two become
    one by minima and maxima of whole arrays. A sort takes row by row.
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
        one, other = zip(*(tf.split(part, 2) for part in sorted_lists), strict=True)
        sorted_lists = _merged(one, other, k)
    return sorted_lists[k - 1][0]


def _merged(one: Sequence[tf.Tensor], other: Sequence[tf.Tensor], k: int) -> list[tf.Tensor]:
    """Returns the k smallest of two sorted lists, sorted: all of them where they are fewer.

    The first list joined to the second one backwards rises and falls, and so do the smaller of each
    pair where one is cut. Such a sequence is sorted by comparing over halving distances (Batcher,
    1968, Sorting networks and their applications), as if the smallest of all stood before it up to
    a power of two.
    """
    size = min(k, len(one) + len(other))
    merged = [
        functools.reduce(tf.minimum, [*one[n : n + 1], *other[size - 1 - n : size - n]])
        for n in range(size)
    ]
    whole = 2 ** math.ceil(math.log2(size))
    apart = whole // 2
    while apart:
        for n in range(size - apart):
            if not (n + whole - size) & apart:
                low, high = merged[n], merged[n + apart]
                merged[n], merged[n + apart] = tf.minimum(low, high), tf.maximum(low, high)
        apart //= 2
    return merged
