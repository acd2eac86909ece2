"""The object's paths in an evaluation, seen from above: a picture for TensorBoard."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from music_tf.config.world import ALL
from music_tf.envs.registry import EnvironmentInfo, told_apart_by
from music_tf.tools.drawing import COLOURS, PAPER, font, grid, line, stacked
from music_tf.types import Array, Episodes

Picture = npt.NDArray[np.uint8]  # [height, width, 3]
WIDTH = 420
_LONGEST_ROW, _LARGEST_PANEL = 840, 168
"""Most pixels across a row of several panels, and across each of them."""
_ROW, _MANY, _LONG_ROW = 5, 20, 10
"""Panels in a row; number of panels above which rows are longer; panels in such a row."""
_MOST_PATHS = 100
_MARGIN = 0.1
"""Margin around the support, or around the paths without one, in the unit of the environment."""
_BORDER = 0.05
"""Least margin around paths without a support, as a share of their extent."""
_RATIOS = (0.4, 1.6)
_FINE = 2  # drawn larger and then reduced, for smooth lines
_GAP, _TITLE, _LEGEND, _TEXT = 2 * _FINE, 14 * _FINE, 44 * _FINE, 13 * _FINE
_START, _END = 2.5 * _FINE, 3.5 * _FINE
_LONGEST_BAR = 50 * _FINE
_INK, _PALE, _TABLE = "#333333", "#b8b8b8", "#f4f1ea"


def paths_from_above(episodes: Episodes, info: EnvironmentInfo) -> Picture | None:
    """Returns paths of the object, or of a descriptor, in panels by skill; None without either."""
    places = _places(episodes, info)
    if places is None:
        return None
    places = places[:_MOST_PATHS]
    numbers = episodes.skill_numbers()
    skills = np.zeros(len(places), np.int64) if numbers is None else numbers[:_MOST_PATHS]
    shown = np.unique(skills).tolist()
    rows = math.ceil(len(shown) / (_ROW if len(shown) <= _MANY else _LONG_ROW))
    columns = math.ceil(len(shown) / rows)  # rows of about equal length
    width = WIDTH if columns == 1 else min(_LARGEST_PANEL, _LONGEST_ROW // columns)

    support = info.support
    low = np.array(support.low) if support else places.min(axis=(0, 1))
    high = np.array(support.high) if support else places.max(axis=(0, 1))
    margin = _MARGIN if support else max(_MARGIN, _BORDER * float(np.max(high - low)))
    across, up = high - low + 2 * margin
    kept = np.clip(up, _RATIOS[0] * across, _RATIOS[1] * across)
    beside = np.array([margin, margin + (kept - up) / 2.0])
    low, high = low - beside, high + beside
    size = _FINE * width, _FINE * round(width * kept / across)
    scale = float(size[0] / across)

    def pixels(points: Array) -> Array:
        """Returns the pixels of points [..., 2]; points far outside are moved to the border."""
        seen = np.clip(points, low - margin, high + margin)
        placed: Array = np.stack([seen[..., 0] - low[0], high[1] - seen[..., 1]], axis=-1)
        return placed * scale

    panels = []
    for skill in shown:
        panel = Image.new("RGB", size, PAPER)
        draw = ImageDraw.Draw(panel)
        colour = COLOURS[skill % len(COLOURS)]
        if support:
            (left, bottom), (right, top) = pixels(np.array([support.low, support.high])).tolist()
            draw.rectangle((left, top, right, bottom), _TABLE, _PALE, _FINE)
        paths = pixels(places[skills == skill])
        for path in paths:
            draw.line(path.ravel().tolist(), colour, 2 * _FINE, "curve")
        for path in paths:
            _dot(draw, path[0], _START, PAPER)
            _dot(draw, np.clip(path[-1], 0, size), _END, colour)  # beyond it: at the border
        titled = numbers is not None and episodes.skill.shape[-1] > 1
        title = [line(f"skill {skill}", size[0], _TITLE, _INK)] if titled else []
        panels.append(stacked([*title, panel]))

    upwards = "time" if info.object is not None and len(info.object) == 1 else "y"
    sheet = grid(panels, columns, gap=_GAP)
    text = f"end of {len(places)} episodes; x to the right, {upwards} up"
    legend = _legend(sheet.width, text, scale, info.unit)
    return np.asarray(stacked([sheet, legend]).reduce(_FINE))


def _legend(width: int, text: str, scale: float, unit: str) -> Image.Image:
    legend = Image.new("RGB", (width, _LEGEND), PAPER)
    draw = ImageDraw.Draw(legend)
    x, y = 10.0 * _FINE, _LEGEND / 2
    for radius, colour, label in ((_START, PAPER, "start"), (_END, _PALE, text)):
        _dot(draw, (x, y), radius, colour)
        draw.text((x + 8 * _FINE, y), label, _INK, font(_TEXT), "lm")
        x += 24 * _FINE + draw.textlength(label, font(_TEXT))
    length = round_length(_LONGEST_BAR / scale)
    label, end = f"{length:g} {unit}".rstrip(), x + length * scale
    if end + 6 * _FINE + draw.textlength(label, font(_TEXT)) <= width:
        draw.line((x, y, end, y), _INK, _FINE)
        for tick in (x, end):
            draw.line((tick, y - _END, tick, y + _END), _INK, _FINE)
        draw.text((end + 6 * _FINE, y), label, _INK, font(_TEXT), "lm")
    return legend


def round_length(most: float) -> float:
    """Returns the largest of 1, 2 and 5 times a power of ten up to a positive number."""
    power = 10.0 ** math.floor(math.log10(most))
    # the logarithm of a number just below a power of ten is rounded up
    return next(step * power for step in (5.0, 2.0, 1.0, 0.5) if step * power <= most)


def _places(episodes: Episodes, info: EnvironmentInfo) -> Array | None:
    """Returns the points of paths in a plane, [E, T + 1, 2]."""
    if info.object is not None:
        places = episodes.observation[..., list(info.object[:2])]
        if len(info.object) > 1:
            return places
        steps, height = places.shape[1], max(float(np.ptp(places)), _MARGIN)
        time = np.linspace(0.0, height, steps, dtype=np.float32)  # in the range of places
        return np.stack([places[..., 0], np.broadcast_to(time, places.shape[:2])], axis=-1)
    if info.descriptor in ((), ALL) or episodes.skill.shape[-1] == 1:
        return None
    columns, extra = told_apart_by(info, episodes.observation.shape[-1])
    places = episodes.extras[extra] if extra else episodes.observation[..., list(columns)]
    return places[..., :2] if places.shape[-1] > 1 else None


def _dot(draw: ImageDraw.ImageDraw, centre: Sequence[float], radius: float, colour: str) -> None:
    x, y = centre
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour, _INK, _FINE)
