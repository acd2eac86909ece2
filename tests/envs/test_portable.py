import gymnasium
import numpy as np
import pytest

from music_tf.envs.portable import held_by

BOX = gymnasium.spaces.Box(np.array([0.7, -1.0]), np.array([1.0, 0.1]), dtype=np.float64)


def test_rows_are_moved_back_into_their_space_in_its_type_or_refused_with_their_step():
    rows = np.float32([[0.7, 0.1], [0.8, 0.0]])
    assert not BOX.contains(rows[0].astype(np.float64))
    held = held_by(BOX, rows, "observation")
    np.testing.assert_array_equal(held, [[0.7, 0.1], [np.float32(0.8), 0.0]])
    with pytest.raises(ValueError, match=r"the goal of step 1 is not in .*: \[0\.6 0\. \]"):
        held_by(BOX, np.float64([[0.7, 0.1], [0.6, 0.0]]), "goal")
    box = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    assert held_by(box, np.zeros((3, 2)), "action").dtype == np.float32
