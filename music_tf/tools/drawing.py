"""Puts pictures of episodes on one sheet, each with a caption, under a common title."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

INK, PAPER, GOOD = (30, 30, 30), (255, 255, 255), (0, 120, 40)
_BETWEEN = (205, 205, 205)
_GAP = 4
_TITLE_SIZES = range(18, 8, -1)
_CAPTION_SIZES = range(15, 8, -1)
_NOTE_SIZE = 12

Colour = tuple[int, int, int]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def tile(
    image: npt.NDArray[np.uint8],
    width: int,
    caption: str,
    colour: Colour = INK,
    panels: Sequence[Image.Image] = (),
) -> Image.Image:
    """Returns a picture of the given width with panels and its caption below.

    Args:
        image: Shape [height, width, 3].
        width: In pixels.
        caption: One line; the letters shrink where it is long.
        colour: Of the caption.
        panels: Of the same width.
    """
    picture = Image.fromarray(image)
    height = max(1, round(width * picture.height / picture.width))
    grows = width > picture.width
    filter_ = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
    parts = [
        picture.resize((width, height), filter_),
        *panels,
        _line(caption, width, _CAPTION_SIZES, colour),
    ]
    result = Image.new("RGB", (width, sum(part.height for part in parts)), PAPER)
    top = 0
    for part in parts:
        result.paste(part, (0, top))
        top += part.height
    return result


def sheet(tiles: Sequence[Image.Image], columns: int, title: str = "") -> Image.Image:
    """Returns tiles of equal size in rows, with even width and height as video formats want."""
    width, height = tiles[0].size
    rows = math.ceil(len(tiles) / columns)
    whole = columns * (width + _GAP) - _GAP
    head = _line(title, whole, _TITLE_SIZES, INK) if title else None
    top = head.height + _GAP if head else 0
    total = top + rows * (height + _GAP) - _GAP
    result = Image.new("RGB", (whole + whole % 2, total + total % 2), _BETWEEN)
    if head is not None:
        result.paste(head, (0, 0))
    for number, one in enumerate(tiles):
        row, column = divmod(number, columns)
        result.paste(one, (column * (width + _GAP), top + row * (height + _GAP)))
    return result


def written(text: str, width: int, indent: int, colour: Colour) -> Image.Image:
    """Returns a strip with one small line of text that begins after an indent."""
    strip = Image.new("RGB", (width, _NOTE_SIZE + 8), PAPER)
    at = (indent, strip.height / 2)
    ImageDraw.Draw(strip).text(at, text, fill=colour, font=_font(_NOTE_SIZE), anchor="lm")
    return strip


def _line(text: str, width: int, sizes: range, colour: Colour) -> Image.Image:
    """Returns a strip with one line of text, centred; its height depends on its width alone."""
    strip = Image.new("RGB", (width, sizes.start + 8), PAPER)
    draw = ImageDraw.Draw(strip)
    fitting = (size for size in sizes if draw.textlength(text, _font(size)) <= width - _GAP)
    font = _font(next(fitting, sizes[-1]))
    draw.text((width / 2, strip.height / 2), text, fill=colour, font=font, anchor="mm")
    return strip


@functools.cache
def _font(size: int) -> Font:
    return ImageFont.load_default(size)
