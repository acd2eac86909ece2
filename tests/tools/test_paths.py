import numpy as np
import pytest
from PIL import ImageColor

from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.tools.paths import COLOURS, paths_from_above
from music_tf.types import Episodes

INFO = EnvironmentInfo(
    family="toy", object=(1, 2, 3), support=Support(low=(0.0, 0.0), high=(0.8, 0.6), rest_height=0)
)


def episodes(places, skills=1):
    """Episodes whose object goes from place to place; they take turns at the skills."""
    observation = np.zeros([len(places), len(places[0]), 4], np.float32)
    observation[..., 1:3] = places
    skill = np.eye(skills, dtype=np.float32)[np.arange(len(places)) % skills]
    nothing = np.zeros([len(places)])
    fields = dict.fromkeys(Episodes._fields, nothing)
    return Episodes(**{**fields, "observation": observation, "skill": skill, "extras": {}})


def near(colour, wanted):
    return np.abs(np.int64(colour) - ImageColor.getrgb(wanted)).max() <= 12


def crosses(picture, row, column, wanted):
    return any(near(colour, wanted) for colour in picture[row - 2 : row + 3, column])


def test_a_path_lies_where_the_object_went_with_y_up():
    # 1 m is shown across 420 pixels, from x = -0.1 on, and y from 0.7 downwards
    picture = paths_from_above(episodes([[[0.1, 0.5], [0.7, 0.5]]]), INFO)
    assert picture.shape == (0.8 * 420 + 44, 420, 3)
    assert picture.dtype == np.uint8
    assert crosses(picture, 84, 210, COLOURS[0])  # (0.4, 0.5)
    assert not crosses(picture, 84, 60, COLOURS[0])  # before its start
    assert not crosses(picture, 252, 210, COLOURS[0])  # the same x, y = 0.1


def test_it_starts_open_and_ends_filled():
    picture = paths_from_above(episodes([[[0.1, 0.5], [0.7, 0.5]]]), INFO)
    assert near(picture[84, 84], "#ffffff")
    assert crosses(picture, 84, 336, COLOURS[0])


def test_objects_far_away_leave_the_picture_as_large_as_it_is():
    picture = paths_from_above(episodes([[[0.4, 0.3], [1e30, 0.3]]]), INFO)
    assert picture.shape == (380, 420, 3)
    assert crosses(picture, 168, 378, COLOURS[0])  # to the right of its start, as it went
    assert not crosses(picture, 168, 60, COLOURS[0])


def test_without_a_support_the_paths_fill_the_view():
    info = EnvironmentInfo(family="toy", object=(1, 2, 3))
    path = [[5.0, 5.0], [5.8, 5.0], [5.8, 5.6], [5.0, 5.6]]
    picture = paths_from_above(episodes([path]), info)
    assert picture.shape == (380, 420, 3)
    assert crosses(picture, 42, 210, COLOURS[0])  # (5.4, 5.6)
    assert crosses(picture, 294, 210, COLOURS[0])  # (5.4, 5.0)
    still = paths_from_above(episodes([[[5.0, 5.0], [5.0, 5.0]]]), info)
    assert still.shape == (464, 420, 3)


def test_without_an_object_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="no object"):
        paths_from_above(episodes([[[0.0, 0.0], [1.0, 1.0]]]), EnvironmentInfo(family="toy"))
