"""Actions in [-1, 1] become actions of a space of whole numbers without wrapping around."""

import numpy as np
from gymnasium.spaces import Box

from music_tf.envs.actions import in_space
from tests.kit.cases import cases


@cases(
    ("low", "high", "dtype"),
    (0, 2**31 - 1, np.int32),
    (-(2**31), 2**31 - 1, np.int32),
    (-(2**63), 2**63 - 1, np.int64),
    (0, 255, np.uint8),
    (-3, 3, np.int64),
)
def test_whole_numbers_reach_both_bounds_and_stay_between_them(low, high, dtype):
    space = Box(low, high, (1,), dtype)
    ends = in_space(space, np.array([[-1.0], [1.0]], np.float32))
    assert ends.tolist() == [[low], [high]]
    middle = in_space(space, np.array([[0.5]], np.float32))
    assert middle.dtype == dtype
    np.testing.assert_allclose(middle, low + 0.75 * (high - low), rtol=1e-6, atol=0.5)
