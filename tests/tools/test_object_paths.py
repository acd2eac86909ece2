import numpy as np
import pytest
from PIL import ImageColor

from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.tools.drawing import COLOURS
from music_tf.tools.object_paths import paths_from_above, round_length
from music_tf.types import Episodes
from tests.kit.cases import cases

INFO = EnvironmentInfo(
    object=(1, 2, 3), support=Support(low=(0.0, 0.0), high=(0.8, 0.6), rest_height=0)
)


def episodes(places, skills=1):
    """Episodes whose object goes from place to place; they take turns at the skills."""
    observation = np.zeros([len(places), len(places[0]), 4], np.float32)
    observation[..., 1:3] = places
    skill = np.eye(skills, dtype=np.float32)[np.arange(len(places)) % skills]
    fields = dict.fromkeys(Episodes._fields, np.zeros([len(places)]))
    return Episodes(**{**fields, "observation": observation, "skill": skill, "extras": {}})


def near(colour, wanted):
    return np.abs(np.int64(colour) - ImageColor.getrgb(wanted)).max() <= 12


def crosses(picture, row, column, wanted):
    return any(near(colour, wanted) for colour in picture[row - 2 : row + 3, column])


def test_a_path_lies_where_the_object_went_with_y_up_from_an_open_to_a_filled_circle():
    # 1 m is shown across 420 pixels, from x = -0.1 on, and y from 0.7 downwards
    picture = paths_from_above(episodes([[[0.1, 0.5], [0.7, 0.5]]]), INFO)
    assert (picture.shape, picture.dtype) == ((0.8 * 420 + 44, 420, 3), np.uint8)
    assert crosses(picture, 84, 210, COLOURS[0])  # (0.4, 0.5)
    assert not crosses(picture, 84, 60, COLOURS[0])  # before its start
    assert not crosses(picture, 252, 210, COLOURS[0])  # the same x, y = 0.1
    assert near(picture[84, 84], "#ffffff")
    assert crosses(picture, 84, 336, COLOURS[0])


def test_objects_far_away_leave_the_picture_its_size_and_without_support_paths_fill_it():
    picture = paths_from_above(episodes([[[0.4, 0.3], [1e30, 0.3]]]), INFO)
    assert (picture.shape, near(picture[166, 418], COLOURS[0])) == ((380, 420, 3), True)  # its end
    assert crosses(picture, 168, 378, COLOURS[0])  # to the right of its start, as it went
    assert not crosses(picture, 168, 60, COLOURS[0])
    info = EnvironmentInfo(object=(1, 2, 3))
    picture = paths_from_above(episodes([[[5.0, 5.0], [5.8, 5.0], [5.8, 5.6], [5.0, 5.6]]]), info)
    assert picture.shape == (380, 420, 3)
    assert crosses(picture, 42, 210, COLOURS[0])  # (5.4, 5.6)
    assert paths_from_above(episodes([[[5.0, 5.0], [5.0, 5.0]]]), info).shape == (464, 420, 3)


@cases(
    *(("most", "length"), (0.99, 0.5), (1.0, 1.0), (4.9, 2.0), (0.031, 0.02), (700.0, 500.0)),
    (0.1 - 2**-56, 0.05),
)
def test_a_round_length_is_the_largest_that_fits(most, length):
    assert round_length(most) == pytest.approx(length)


def test_without_an_object_skills_are_drawn_by_what_tells_them_apart():
    played = episodes([[[0.1, 0.2], [0.7, 0.2]], [[0.1, 0.4], [0.7, 0.4]]], 2)
    expected = paths_from_above(played, EnvironmentInfo(object=(1, 2, 3)))
    by_columns = EnvironmentInfo(descriptor=(1, 2))
    np.testing.assert_array_equal(paths_from_above(played, by_columns), expected)
    beside = played._replace(
        observation=np.zeros_like(played.observation),
        extras={"torso": played.observation[..., 1:4]},
    )
    by_extra = EnvironmentInfo(descriptor="torso")
    np.testing.assert_array_equal(paths_from_above(beside, by_extra), expected)
    for other in (
        EnvironmentInfo(),
        EnvironmentInfo(descriptor=(1,)),
        EnvironmentInfo(descriptor="observation"),
    ):
        assert paths_from_above(played, other) is None


# 1 m is shown across the 168 pixels of a panel, from x = -0.1 on, and y from 0.7 downwards;
# above it stands a title of 18, and 2 lie between panels.
WIDTH, HEIGHT, TITLE, GAP, LEGEND = 168, 134, 18, 2, 44


def picture_of(skills, count=None):
    """Paths from x = 0.1 to 0.7 of skills in turn, at y = 0.2 and of odd ones at 0.4."""
    height = [0.2 + 0.2 * (number % skills % 2) for number in range(count or skills)]
    return paths_from_above(episodes([[[0.1, y], [0.7, y]] for y in height], skills), INFO)


def corner(skill, columns):  # row and column of a panel's first pixel below its title
    row, column = divmod(skill, columns)
    return row * (TITLE + HEIGHT + GAP) + TITLE, column * (WIDTH + GAP)


@cases(("skills", "columns", "rows"), (2, 2, 1), (5, 5, 1), (7, 4, 2), (11, 4, 3), (16, 4, 4))
def test_each_skill_has_a_panel_with_its_own_path_alone(skills, columns, rows):
    picture = picture_of(skills)
    height = rows * (TITLE + HEIGHT + GAP) - GAP + LEGEND
    assert picture.shape == (height, columns * (WIDTH + GAP) - GAP, 3)
    for skill in range(skills):
        top, left = corner(skill, columns)
        colour = COLOURS[skill % len(COLOURS)]
        at, elsewhere = (50, 84) if skill % 2 else (84, 50)
        assert crosses(picture, top + at, left + 67, colour)  # x = 0.3
        assert not crosses(picture, top + elsewhere, left + 67, colour)
        assert (picture[top - TITLE : top, left : left + WIDTH] < 100).any()
        panel = np.int64(picture[top : top + HEIGHT, left : left + WIDTH])
        for other in set(COLOURS) - {colour}:
            assert (np.abs(panel - ImageColor.getrgb(other)).max(axis=-1) > 12).all()


def test_every_panel_shows_the_same_part_of_the_plane_below_its_title():
    # The second object goes far to the right, which moves the paths of neither panel.
    places = [[[0.1, 0.3], [0.7, 0.3]], [[0.1, 0.3], [9.0, 0.3]]]
    picture = paths_from_above(episodes(places, 2), INFO)
    panels = [picture[TITLE : TITLE + HEIGHT, left : left + WIDTH] for left in (0, WIDTH + GAP)]
    supports = [np.all(np.abs(np.int64(p) - (244, 241, 234)) <= 2, axis=-1) for p in panels]
    # Rows away from the path, and the whole outline: x from 0 to 0.8, y from 0.6 to 0.
    assert supports[0][30, 20:150].all()
    assert not supports[0][30, :15].any()
    np.testing.assert_array_equal(supports[0][:60], supports[1][:60])
    assert (picture_of(1, count=3)[:TITLE] == 255).all()


def test_a_pinned_skill_has_the_whole_picture_and_many_have_smaller_panels():
    played = episodes([[[0.1, 0.3], [0.7, 0.3]]] * 2, 3)
    played = played._replace(skill=np.eye(3, dtype=np.float32)[[2, 2]])
    picture = paths_from_above(played, INFO)
    assert picture.shape == (TITLE + 336 + LEGEND, 420, 3)
    assert (picture[:TITLE] < 100).any()
    assert crosses(picture, TITLE + 168, 168, COLOURS[2])
    assert picture_of(21).shape[1] == 7 * (WIDTH * 5 // 7 + GAP) - GAP  # three rows of 7
    assert picture_of(4096, count=300).shape[1] == 10 * (84 + GAP) - GAP  # those of 100 episodes


def test_continuous_conditions_share_a_panel():
    shown = episodes([[[0.1, 0.5], [0.7, 0.5]], [[0.1, 0.1], [0.7, 0.1]]])
    vectors = shown._replace(skill=np.float32([[0.3, -1.2], [2.0, 0.1]]))
    np.testing.assert_array_equal(paths_from_above(vectors, INFO), paths_from_above(shown, INFO))
