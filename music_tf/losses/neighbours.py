"""Distances to nearest neighbours: a reward that no network has to learn."""

import tensorflow as tf

FAR = 1e6
"""Where a row lies that is missing, in each column: further than any place that a robot gets to."""
_FEW_COLUMNS, _FEW_ROUNDS = 8, 5


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
    if query.shape[-1] <= _FEW_COLUMNS:
        squares = tf.zeros([])
        for column in range(query.shape[-1]):
            apart = query[..., :, None, column] - rows[..., None, :, column]
            squares += apart * apart
    else:
        centre = tf.reduce_mean(query, axis=-2, keepdims=True)
        query, rows = query - centre, rows - centre
        squares = (
            tf.reduce_sum(query * query, -1)[..., :, None]
            + tf.reduce_sum(rows * rows, -1)[..., None, :]
            - 2.0 * tf.matmul(query, rows, transpose_b=True)
        )
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
    return tf.sqrt(_kth_smallest(squares, k))


def _kth_smallest(values: tf.Tensor, k: int) -> tf.Tensor:
    """Returns the k-th smallest along the last axis; of small k without sorting anything."""
    if not 1 <= k <= values.shape[-1]:
        raise ValueError(f"k: expected a number in [1, {values.shape[-1]}], got {k}")
    if k > _FEW_ROUNDS:
        return -tf.math.top_k(-values, k).values[..., -1]
    places = tf.range(values.shape[-1], dtype=tf.int64)
    for _ in range(k - 1):  # of equal values one goes at a time
        values = tf.where(places == tf.argmin(values, -1)[..., None], float("inf"), values)
    return tf.reduce_min(values, -1)
