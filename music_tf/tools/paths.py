"""Where the object went in an evaluation, drawn from above: a picture for TensorBoard.

Drawn with Pillow in a few milliseconds, on the root alone and without random numbers.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.types import Array, Episodes

Picture = npt.NDArray[np.uint8]  # [height, width, 3]
COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"),
)
"""One for each skill, or each line of a plot, and then from the front again."""
_MOST_PATHS = 100
_MARGIN = 0.1
"""Metres shown around the support, or around the paths where there is none."""
WIDTH = 420
"""Pixels across a picture with one panel."""
_LONGEST_ROW, _LARGEST_PANEL = 840, 168
"""Pixels across a row of several panels, and across each of them."""
_ROW, _MANY, _LONG_ROW = 5, 20, 10
"""Panels side by side, and from how many on their rows are longer."""
_RATIOS = (0.4, 1.6)
_GAP, _TITLE_HEIGHT, _LEGEND_HEIGHT = 2, 18, 44
_FINE = 2
"""Drawn this much larger and then reduced, for smooth lines."""
_PAPER, _INK, _PALE, _TABLE, _BETWEEN = "#ffffff", "#333333", "#b8b8b8", "#f4f1ea", "#cdcdcd"


class _View(NamedTuple):
    """The part of the plane that every panel shows."""

    low: Array
    high: Array
    scale: float
    """Fine pixels a metre."""
    support: Support | None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in fine pixels, both a multiple of `_FINE`."""
        width, height = (self.scale * (self.high - self.low) / _FINE).round().astype(int).tolist()
        return _FINE * width, _FINE * height

    def pixels(self, points: Array) -> Array:
        """Returns where points [..., 2] lie, those far outside of the view at its rim."""
        seen = np.clip(points, self.low - _MARGIN, self.high + _MARGIN)
        placed: Array = np.stack([seen[..., 0] - self.low[0], self.high[1] - seen[..., 1]], axis=-1)
        return placed * self.scale


def paths_from_above(episodes: Episodes, info: EnvironmentInfo) -> Picture:
    """Returns a picture of the object's path in each episode, x to the right and y up.

    Where there are several skills, each that acts has a panel of its own under its number, and
    all panels show the same part of the plane. The support is an outline; a path begins at an
    open circle and ends at a filled one.

    Args:
        episodes: At least one; of many the first 100 are drawn.
        info: Where the object is, which must be known, and what supports it.

    Raises:
        ValueError: The environment has no object.
    """
    if info.object is None:
        raise ValueError(f"{info.family}: there is no object whose path could be drawn")
    place = episodes.observation[:_MOST_PATHS, :, list(info.object[:2])]  # [E, T + 1, 2]
    skills = episodes.skill[:_MOST_PATHS].argmax(axis=-1)
    shown = np.unique(skills).tolist()
    rows = math.ceil(len(shown) / (_ROW if len(shown) <= _MANY else _LONG_ROW))
    columns = math.ceil(len(shown) / rows)  # so that all rows are about as long
    width = WIDTH if columns == 1 else min(_LARGEST_PANEL, _LONGEST_ROW // columns)
    support = info.support
    low = np.array(support.low) if support else place.min(axis=(0, 1))
    high = np.array(support.high) if support else place.max(axis=(0, 1))
    across, up = high - low + 2 * _MARGIN
    kept = np.clip(up, _RATIOS[0] * across, _RATIOS[1] * across)
    beside = np.array([_MARGIN, _MARGIN + (kept - up) / 2.0])
    view = _View(low - beside, high + beside, _FINE * width / across, support)
    titled = episodes.skill.shape[-1] > 1
    panels = [
        _panel(place[skills == skill], view, int(skill), f"skill {skill}" if titled else "")
        for skill in shown
    ]
    return np.asarray(_sheet(panels, columns, len(place)).reduce(_FINE))


def _panel(place: Array, view: _View, skill: int, title: str) -> Image.Image:
    """Draws paths [E, T + 1, 2] of one skill, below its title if it has one."""
    image = Image.new("RGB", view.size, _PAPER)
    draw = ImageDraw.Draw(image)
    colour = COLOURS[skill % len(COLOURS)]
    if view.support is not None:
        corners = view.pixels(np.array([view.support.low, view.support.high]))
        (left, bottom), (right, top) = corners.tolist()
        draw.rectangle((left, top, right, bottom), _TABLE, _PALE, _FINE)
    lines = view.pixels(place)
    for path in lines:
        draw.line(path.ravel().tolist(), colour, 2 * _FINE, "curve")
    for path in lines:
        _dot(draw, path[0], 2.5, None)
        _dot(draw, path[-1], 3.5, colour)
    if not title:
        return image
    whole = Image.new("RGB", (image.width, image.height + _FINE * _TITLE_HEIGHT), _PAPER)
    whole.paste(image, (0, _FINE * _TITLE_HEIGHT))
    middle = (image.width / 2, _FINE * _TITLE_HEIGHT / 2)
    ImageDraw.Draw(whole).text(middle, title, _INK, _font(), "mm")
    return whole


def _sheet(panels: list[Image.Image], columns: int, paths: int) -> Image.Image:
    """Returns panels of equal size in rows, with a legend below."""
    width, height = (side + _FINE * _GAP for side in panels[0].size)
    rows = math.ceil(len(panels) / columns)
    whole = columns * width - _FINE * _GAP
    below = rows * height - _FINE * _GAP
    image = Image.new("RGB", (whole, below + _FINE * _LEGEND_HEIGHT), _BETWEEN)
    blank = Image.new("RGB", panels[0].size, _PAPER)
    for number, panel in enumerate([*panels, *[blank] * (rows * columns - len(panels))]):
        row, column = divmod(number, columns)
        image.paste(panel, (column * width, row * height))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, below, *image.size), _PAPER)
    x, y = 10.0 * _FINE, below + _FINE * _LEGEND_HEIGHT / 2
    for radius, colour, text in (
        (2.5, None, "start"),
        (3.5, _PALE, f"end of {paths} episodes; x to the right, y up"),
    ):
        _dot(draw, np.array([x, y]), radius, colour)
        draw.text((x + 8 * _FINE, y), text, _INK, _font(), "lm")
        x += 24 * _FINE + draw.textlength(text, _font())
    return image


def _dot(draw: ImageDraw.ImageDraw, centre: Array, radius: float, colour: str | None) -> None:
    x, y = centre.tolist()
    reach = radius * _FINE
    draw.ellipse((x - reach, y - reach, x + reach, y + reach), colour or _PAPER, _INK, _FINE)


@functools.cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(13 * _FINE)
