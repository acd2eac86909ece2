import itertools

import numpy as np

from music_tf.tools.film_pace import pace_of, reported
from tests.kit.cases import cases


@cases(
    ("steps_per_second", "every", "frames_per_second"),
    (10, 1, 10),
    (31, 2, 15.5),
    (125, 5, 25),
    (1000, 34, 1000 / 34),
)
def test_a_film_is_as_fast_as_its_environment_with_at_most_thirty_frames_a_second(
    steps_per_second, every, frames_per_second
):
    assert pace_of(steps_per_second) == (every, frames_per_second)


@cases(
    ("steps_per_second", "steps", "every", "frames"),
    (125, 1000, 5, 201),  # 8 s
    (125, 12, 5, 4),  # 0, 5, 10 and the last
    (20, 401, 2, 202),  # 20 s more would be needed: every second step
    (10, 0, 1, 1),
)
def test_long_episodes_are_thinned_to_twenty_seconds(steps_per_second, steps, every, frames):
    pace = pace_of(steps_per_second)
    shown = pace.shown(steps)
    assert (shown.tolist(), len(shown)) == ([*range(0, steps, every), steps], frames)
    assert len(shown) <= 1 + 20.0 * pace.frames_per_second


def test_no_episode_has_more_pictures_than_are_announced():
    for rate, most in itertools.product((1, 7, 25, 125), (1, 30, 999, 5000)):
        pace = pace_of(rate)
        assert max(len(pace.shown(steps)) for steps in range(most + 1)) <= pace.most_pictures(most)
    assert pace_of(125).most_pictures(1000) == 201


def test_what_is_left_is_said_soon_then_every_ten_seconds():
    lines, times = [], iter(np.arange(100) * 3.0)
    frames = list(reported("abcdefghijklm", 20, lines.append, lambda: next(times)))
    assert frames == list("abcdefghijklm")
    # 3 s a frame: after four of them 16 are left, which take 48 s.
    assert lines == [
        "frame 4 of 20, about 0:48 left",
        "frame 8 of 20, about 0:36 left",
        "frame 12 of 20, about 0:24 left",
    ]
