"""Helpers of films, paths and plots: lines of text, composed pictures, and their files."""

import contextlib
import functools
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from music_tf.errors import EnvironmentFault

INK, PAPER, BETWEEN = "#1e1e1e", "#ffffff", "#cdcdcd"
COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
)
"""Colours of skills, or of the lines of a plot; they repeat."""
GAP = 4
_SMALLEST = 9


@functools.cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def line(
    text: str, width: int, size: int, colour: str = INK, left: int | None = None
) -> Image.Image:
    """Returns a strip with a line of text, in smaller letters if it is too long for the strip."""
    # Sizes are in pixels; the height follows from `size`. Without `left` the text is centred.
    strip = Image.new("RGB", (width, size + 8), PAPER)
    draw = ImageDraw.Draw(strip)
    room = width - (left or 0) - GAP
    sizes = range(size, _SMALLEST, -1)
    fitting = (font(pixels) for pixels in sizes if draw.textlength(text, font(pixels)) <= room)
    letters = next(fitting, font(_SMALLEST))
    at, anchor = (width / 2, "mm") if left is None else (left, "lm")
    draw.text((at, strip.height / 2), text, colour, letters, anchor)
    return strip


def stacked(parts: Sequence[Image.Image]) -> Image.Image:
    result = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)), PAPER)
    top = 0
    for part in parts:
        result.paste(part, (0, top))
        top += part.height
    return result


def grid(
    tiles: Sequence[Image.Image], columns: int, shape: tuple[int, int] | None = None, gap: int = GAP
) -> Image.Image:
    """Returns tiles of one size in rows, with even width and height for video formats."""
    # `shape` has columns and rows of the grid, blank beyond the tiles; `gap` is in pixels.
    width, height = tiles[0].size
    across, down = shape or (columns, math.ceil(len(tiles) / columns))
    whole, high = across * (width + gap) - gap, down * (height + gap) - gap
    result = Image.new("RGB", (whole + whole % 2, high + high % 2), BETWEEN)
    blank = Image.new("RGB", (width, height), PAPER)
    for row, column in itertools.product(range(down), range(across)):
        number = row * columns + column
        filled = column < columns and number < len(tiles)
        place = column * (width + gap), row * (height + gap)
        result.paste(tiles[number] if filled else blank, place)
    return result


@contextlib.contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """Yields a draft that replaces `out`; it is made at once, so a fault comes before any work."""
    path = out.absolute()
    draft = path.with_name(f".{out.stem}.tmp-{os.getpid()}{out.suffix.lower()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
        yield draft
        draft.replace(path)
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
