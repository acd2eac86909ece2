import numpy as np
from PIL import Image

from music_tf.tools.drawing import sheet, tile

GREEN = np.full((10, 20, 3), (0, 255, 0), np.uint8)


def ink(picture):
    """How many pixels are darker than half."""
    return int((np.asarray(picture).max(axis=-1) < 128).sum())


def test_a_tile_keeps_the_shape_of_its_picture_and_adds_a_caption():
    small = tile(GREEN, 40, "")
    assert small.size == (40, 20 + 23)
    assert small.getpixel((39, 19)) == (0, 255, 0)
    assert small.getpixel((39, 20)) == (255, 255, 255)


def test_a_caption_is_written_below_the_picture():
    assert ink(tile(GREEN, 200, "episode 1")) > 100
    assert ink(tile(GREEN, 200, "")) == 0


def test_a_long_caption_stays_inside():
    strip = np.asarray(tile(GREEN, 160, "skill 9   episode 1000   step 50/50"))[80:]
    assert (strip[:, [0, -1]] == 255).all()
    assert (strip < 128).any()


def test_a_sheet_has_even_sides_and_leaves_nothing_out():
    tiles = [Image.new("RGB", (11, 7), (number, 0, 0)) for number in (1, 2, 3)]
    whole = sheet(tiles, 2)
    assert whole.size == (2 * 11 + 4, 2 * 7 + 4)
    assert [whole.getpixel(at)[0] for at in ((0, 0), (15, 0), (0, 11))] == [1, 2, 3]
    assert sheet(tiles[:1], 1).size == (12, 8)


def test_a_title_stands_above():
    tiles = [Image.new("RGB", (300, 20), (255, 255, 255))]
    titled = sheet(tiles, 1, "what is shown")
    assert titled.size == (300, 26 + 4 + 20)
    assert ink(titled.crop((0, 0, 300, 26))) > 100
