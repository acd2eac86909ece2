import numpy as np
import pytest
import tensorflow as tf

from music_tf.losses.neighbours import FAR, kth_nearest, kth_nearest_in_time

PLACES = np.float32([[0, 0], [1, 0], [0, 2], [3, 0], [0, 4]])


def distance(query, rows, k):  # of one query among rows
    return float(kth_nearest(tf.constant([[query]], tf.float32), tf.constant([rows]), k)[0, 0])


@pytest.mark.parametrize(("k", "columns"), [(3, 2), (5, 2), (6, 3), (3, 9), (7, 12)])
def test_any_way_to_compute_it_agrees_with_sorting(k, columns):
    random = np.random.default_rng(k)
    query = random.standard_normal([2, 7, columns]).astype(np.float32)
    rows = random.standard_normal([2, 40, columns]).astype(np.float32)
    rows[:, 5:8] = rows[:, 4:5]  # four in one place
    apart = np.linalg.norm(query[:, :, None].astype(np.float64) - rows[:, None], axis=-1)
    expected = np.sort(apart, axis=-1)[..., k - 1]
    found = kth_nearest(tf.constant(query), tf.constant(rows), k)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    shuffled = rows[:, random.permutation(40)]
    np.testing.assert_allclose(
        kth_nearest(tf.constant(query), tf.constant(shuffled), k), expected, rtol=1e-5
    )


@pytest.mark.parametrize("count", [13, 16])
def test_of_any_order_of_near_and_far_rows_the_kth_is_found(count):
    # a network of comparisons that is right for all zeros and ones is right (Knuth, 5.3.4)
    rows = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    given = tf.constant(rows[..., None], tf.float32)
    for k in range(1, 6):
        found = kth_nearest(tf.zeros([len(rows), 1, 1]), given, k)
        np.testing.assert_array_equal(found[:, 0], np.sort(rows, axis=-1)[:, k - 1])


def test_far_off_a_centimetre_is_one_and_missing_rows_are_no_neighbours_yet():
    rows = np.float32([60.0, 40.0]) + np.float32([[0.0, 0.0], [0.01, 0.0], [0.0, 0.03]])
    for k, expected in ((1, 0.0), (2, 0.01), (3, 0.03)):
        assert distance(rows[0], rows, k) == pytest.approx(expected, abs=1e-5)
    padded = np.full([1, 9, 2], FAR, np.float32)
    padded[0, :5] = PLACES
    for k in (1, 3, 5):
        assert distance((0.5, 0.0), padded[0], k) == distance((0.5, 0.0), PLACES, k)
    assert FAR < distance((0.5, 0.0), padded[0], 6) < 2 * FAR


def test_each_worker_is_compared_with_its_own_rows_and_with_those_of_its_time_if_asked():
    rows = tf.constant(np.stack([PLACES, PLACES + 10.0]))
    query = tf.constant([[[0.5, 0.0]], [[10.5, 10.0]]])
    np.testing.assert_allclose(kth_nearest(query, rows, 3), [[2.061553]] * 2, rtol=1e-5)
    table = np.full([1, 2, 3, 2], FAR, np.float32)
    table[0, 0] = [[0, 0], [0, 1], [0, 3]]
    table[0, 1] = [[5, 0], [7, 0], [9, 0]]
    query = tf.zeros([1, 3, 2])
    time = tf.constant([[0, 1, 1]])
    np.testing.assert_array_equal(
        kth_nearest_in_time(query, tf.constant(table), time, 2), [[1.0, 7.0, 7.0]]
    )
    np.testing.assert_array_equal(
        kth_nearest_in_time(query, tf.constant(table), time, 3), [[3.0, 9.0, 9.0]]
    )


@pytest.mark.parametrize("k", [0, 6])
def test_an_impossible_number_of_neighbours_is_refused(k):
    with pytest.raises(ValueError, match=rf"k: expected a number in \[1, 5\], got {k}"):
        distance((0.0, 0.0), PLACES, k)
