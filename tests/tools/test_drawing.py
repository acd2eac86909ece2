import contextlib

import numpy as np
import pytest
from PIL import Image

from music_tf.errors import EnvironmentFault
from music_tf.tools.drawing import PAPER, appearing, grid, line, stacked


def plain(*levels, size=(11, 7)):
    return [Image.new("RGB", size, (level, 0, 0)) for level in levels]


@pytest.mark.parametrize("left", [None, 6])
def test_a_line_is_as_high_as_its_letters_ask_and_a_long_one_stays_inside(left):
    for times in (1, 5, 9):
        strip = np.asarray(line("skill 9  " * times, 160, 15, left=left))
        assert strip.shape == (15 + 8, 160, 3)
        assert (strip < 128).any()
        assert times > 5 or (strip[:, [0, -1]] == 255).all()  # the longest has the least letters


def test_a_grid_has_even_sides_leaves_nothing_out_and_is_blank_where_it_has_more_room():
    whole = grid(plain(1, 2, 3), 2)
    assert whole.size == (2 * 11 + 4, 2 * 7 + 4)
    assert [whole.getpixel(at)[0] for at in ((0, 0), (15, 0), (0, 11), (15, 11))] == [1, 2, 3, 255]
    assert (grid(plain(1), 1).size, grid(plain(1, 2), 2, gap=2).size) == ((12, 8), (2 * 11 + 2, 8))
    whole = grid(plain(1, 2), 1, (2, 3))
    assert whole.size == (2 * 11 + 4, 3 * 7 + 2 * 4 + 1)
    column, right = ([whole.getpixel((x, y))[0] for y in (0, 11, 22)] for x in (0, 15))
    assert (column, right) == ([1, 2, 255], [255] * 3)


def test_pictures_are_stacked_with_paper_where_one_is_narrower():
    whole = stacked([*plain(1), *plain(2, size=(5, 3))])
    assert whole.size == (11, 10)
    assert [whole.getpixel(at) for at in ((0, 0), (0, 7), (10, 9))] == [
        (1, 0, 0),
        (2, 0, 0),
        Image.new("RGB", (1, 1), PAPER).getpixel((0, 0)),
    ]


def test_a_file_appears_when_it_is_complete(tmp_path):
    out = tmp_path / "new" / "film.gif"
    with appearing(out) as draft:
        draft.write_bytes(b"all of it")
        assert not out.exists()
    assert out.read_bytes() == b"all of it"
    with contextlib.suppress(RuntimeError), appearing(out) as draft:
        draft.write_bytes(b"a part")
        raise RuntimeError("the lights went out")
    assert (out.read_bytes(), list(out.parent.iterdir())) == (b"all of it", [out])


@pytest.mark.parametrize("name", ["file/film.mp4", f"{'x' * 300}.gif", "folder"])
def test_a_file_that_cannot_be_written_is_a_fault(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(EnvironmentFault, match="cannot be written"), appearing(tmp_path / name):
        pass
