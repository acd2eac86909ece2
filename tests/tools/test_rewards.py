import numpy as np
import pytest

from music_tf.tools.rewards import reward_panel
from music_tf.tools.traces import Trace

WIDTH, STEPS = 246, 4  # less 6 on either side, that is 234 for 4 steps: about 58 each
STEP_CENTRES = [6 + round(234 * (step + 0.5) / STEPS) for step in range(STEPS)]


def panel(values, step, lowest=0.0, highest=1.0, *, name="music", number=0):
    trace = Trace(name, np.float32(values), lowest, highest)
    return np.asarray(reward_panel(trace, number, step, STEPS, WIDTH)).astype(int)


def columns(picture):
    """The columns of pixels in the middle of each step, below the line of text."""
    return [picture[20:, at] for at in STEP_CENTRES]


def coloured(column):
    """How many pixels are neither paper nor the grey of base line and cursor."""
    return int((np.ptp(column, axis=-1) > 30).sum())


def test_a_reward_is_as_high_as_it_pays():
    empty, half, full, beyond = map(coloured, columns(panel([0.0, 0.5, 1.0], 3)))
    assert empty <= 1
    assert beyond == 0  # the episode is over
    assert full >= 17
    assert half == pytest.approx(full / 2, abs=1.5)


def test_rewards_that_are_costs_stand_on_their_lowest_value():
    empty, half, full, _ = map(coloured, columns(panel([-1.0, -0.5, 0.0], 3, -1.0, 0.0)))
    assert (empty <= 1, full >= 17) == (True, True)
    assert half == pytest.approx(full / 2, abs=1.5)


def test_what_is_still_to_come_is_pale():
    paid, to_come, *_ = columns(panel([1.0, 1.0, 1.0, 1.0], 1))
    assert paid[10].max() - paid[10].min() > 100
    assert to_come[10].min() > 180
    assert coloured(to_come) == pytest.approx(coloured(paid), abs=1)


def test_an_unbounded_reward_fills_the_height():
    low, _, high, _ = map(coloured, columns(panel([-30.0, 0.0, 30.0], 3, -np.inf, np.inf)))
    assert (low <= 1, high >= 17) == (True, True)


def test_a_reward_that_never_changes_is_drawn_without_a_range():
    flat = panel([2.0, 2.0], 1, -np.inf, np.inf)
    assert flat.shape == panel([1.0], 0).shape


def test_the_reward_of_the_last_step_is_written_above():
    def text(*arguments, **named):
        return panel(*arguments, **named)[:20]

    assert (text([0.25, 0.75], 1) != text([0.25, 0.75], 2)).any()
    assert (text([0.25, 0.75], 2) == text([0.99, 0.75], 2)).all()
    assert (text([0.25], 1) == text([0.25], 4)).all()  # over, and so the last one stays
    assert (text([0.25], 1) != text([0.25], 1, name="skill")).any()


def test_each_reward_of_a_run_has_a_colour_of_its_own_whatever_it_is_called():
    def colour(number, name="novelty"):
        return tuple(panel([1.0], 1, name=name, number=number)[30, STEP_CENTRES[0]])

    assert len({colour(number) for number in range(6)}) == 6
    assert colour(1) == colour(1, name="music") == colour(7)
