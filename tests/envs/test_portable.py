import gymnasium
import numpy as np
import pytest

from music_tf.envs.portable import held_by

BOX = gymnasium.spaces.Box(np.array([0.7, -1.0]), np.array([1.0, 0.1]), dtype=np.float64)


def test_what_single_precision_moved_out_of_a_space_is_moved_back():
    rows = np.float32([[0.7, 0.1], [0.8, 0.0]])
    assert not BOX.contains(rows[0].astype(np.float64))
    held = held_by(BOX, rows, "observation")
    np.testing.assert_array_equal(held, [[0.7, 0.1], [np.float32(0.8), 0.0]])


def test_what_a_space_does_not_hold_is_refused_with_its_step():
    with pytest.raises(ValueError, match=r"the goal of step 1 is not in .*: \[0\.6 0\. \]"):
        held_by(BOX, np.float64([[0.7, 0.1], [0.6, 0.0]]), "goal")


def test_rows_come_in_the_type_of_the_space():
    box = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    assert held_by(box, np.zeros((3, 2)), "action").dtype == np.float32
