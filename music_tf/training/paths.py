"""Where the object went in an evaluation, drawn from above: a picture for TensorBoard.

Drawn with Pillow in a few milliseconds, on the root alone and without random numbers.
"""

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
_WIDTH = 420
_RATIOS = (0.4, 1.6)
_LINE_HEIGHT = 22
_FINE = 2
"""Drawn this much larger and then reduced, for smooth lines."""
_PAPER, _INK, _PALE, _TABLE = "#ffffff", "#333333", "#b8b8b8", "#f4f1ea"


def paths_from_above(episodes: Episodes, info: EnvironmentInfo) -> Picture:
    """Returns a picture of the object's path in each episode, x to the right and y up.

    The support is an outline; a path begins at an open circle and ends at a filled one, and
    has the colour of its skill where there are several.

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
    low, high = _view(place, info.support)
    scale = _FINE * _WIDTH / (high[0] - low[0])
    size = (_FINE * _WIDTH, round(scale * (high[1] - low[1])) + 2 * _FINE * _LINE_HEIGHT)
    image = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(image)

    def pixels(points: Array) -> Array:
        """Returns where points [..., 2] lie, those far outside of the view at its rim."""
        seen = np.clip(points, low - _MARGIN, high + _MARGIN)
        placed: Array = np.stack([seen[..., 0] - low[0], high[1] - seen[..., 1]], axis=-1) * scale
        return placed

    if info.support is not None:
        corners = pixels(np.array([info.support.low, info.support.high]))
        (left, bottom), (right, top) = corners.tolist()
        draw.rectangle((left, top, right, bottom), _TABLE, _PALE, _FINE)
    lines = pixels(place)
    for path, skill in zip(lines, skills, strict=True):
        draw.line(path.ravel().tolist(), COLOURS[skill % len(COLOURS)], 2 * _FINE, "curve")
    for path, skill in zip(lines, skills, strict=True):
        _dot(draw, path[0], 2.5, None)
        _dot(draw, path[-1], 3.5, COLOURS[skill % len(COLOURS)])
    _write_legend(draw, size, len(place), episodes.skill.shape[-1])
    return np.asarray(image.reduce(_FINE))


def _view(place: Array, support: Support | None) -> tuple[Array, Array]:
    """Returns the lowest and highest x and y that are shown."""
    low = np.array(support.low) if support else place.min(axis=(0, 1))
    high = np.array(support.high) if support else place.max(axis=(0, 1))
    width, height = high - low + 2 * _MARGIN
    shown = np.clip(height, _RATIOS[0] * width, _RATIOS[1] * width)
    beside = np.array([_MARGIN, _MARGIN + (shown - height) / 2.0])
    return low - beside, high + beside


def _dot(draw: ImageDraw.ImageDraw, centre: Array, radius: float, colour: str | None) -> None:
    x, y = centre.tolist()
    reach = radius * _FINE
    draw.ellipse((x - reach, y - reach, x + reach, y + reach), colour or _PAPER, _INK, _FINE)


def _write_legend(
    draw: ImageDraw.ImageDraw, size: tuple[int, int], paths: int, skills: int
) -> None:
    """Writes below the paths what they are, and the colours of skills."""
    font = ImageFont.load_default(13 * _FINE)
    x, y = 10.0 * _FINE, size[1] - 1.5 * _FINE * _LINE_HEIGHT
    draw.rectangle((0, size[1] - 2 * _FINE * _LINE_HEIGHT, *size), _PAPER)
    for radius, colour, text in (
        (2.5, None, "start"),
        (3.5, _PALE, f"end of {paths} episodes; x to the right, y up"),
    ):
        _dot(draw, np.array([x, y]), radius, colour)
        draw.text((x + 8 * _FINE, y), text, _INK, font, "lm")
        x += 24 * _FINE + draw.textlength(text, font)
    if skills == 1:
        return
    x, y = 10.0 * _FINE, y + _FINE * _LINE_HEIGHT
    for skill in range(min(skills, len(COLOURS))):
        _dot(draw, np.array([x, y]), 3.5, COLOURS[skill])
        text = f"skill {skill}" if skill == 0 else str(skill)
        draw.text((x + 8 * _FINE, y), text, _INK, font, "lm")
        x += 24 * _FINE + draw.textlength(text, font)
