import numpy as np
import pytest

from music_tf.intrinsic.running import RunningAverage


def test_it_keeps_99_of_100_parts_after_each_episode_and_goes_on_from_its_state():
    average = RunningAverage()
    assert average.follow(-3.0, 0) is None
    assert average.follow(-1.0, 4) == -2.0  # the mean over the updates by then
    assert average.follow(-1.0, 5) == pytest.approx(0.99 * -2.0 + 0.01 * -1.0)
    assert average.follow(5.0, 5) == pytest.approx(-1.99)
    found = average.follow(1.0, 7)  # two more episodes, with (5 + 1) / 2 each
    assert found == pytest.approx(0.99**2 * -1.99 + (1 - 0.99**2) * 3.0)
    one, other = RunningAverage(), RunningAverage()
    one.follow(-3.0, 1)
    one.follow(-2.0, 1)
    other.state = np.array(one.state)
    assert one.follow(0.0, 2) == other.follow(0.0, 2)
