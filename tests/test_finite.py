import numpy as np
import pytest

from music_tf.types import all_finite, finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, -1e300])
def test_what_single_precision_cannot_hold_is_not_finite_in_any_type(bad):
    assert finite(np.array([0.0, bad, -3.4e38])).tolist() == [True, False, True]
    assert not all_finite(np.array([[1.0], [bad]]))
    assert not all_finite(float(bad))
    assert all_finite(np.float32([3.4e38, -0.0]))
    assert all_finite(np.array([2**62, -(2**63)]))
    assert all_finite(np.array([True, False]))
    assert all_finite(np.zeros(0))
