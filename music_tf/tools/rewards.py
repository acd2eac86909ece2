"""Draws what a reward pays along an episode, to stand under the picture of one of its states."""

import math

import numpy as np
from PIL import Image, ImageDraw

from music_tf.tools.drawing import PAPER, written
from music_tf.tools.traces import Trace
from music_tf.types import Array

COLOURS = ((0, 104, 171), (199, 92, 0), (90, 60, 150), (0, 115, 80), (170, 35, 75), (95, 80, 60))
"""Of the rewards of a run by their order, and then from the front again."""
_AXIS, _CURSOR = (150, 150, 150), (40, 40, 40)
_PALE = 0.22
"""Share of its colour that a reward keeps in the part of the episode that is still to come."""
_FINER = 3
"""Curves are drawn this much larger and then reduced, which makes their edges smooth."""
_SIDE, _ABOVE, _BELOW = 6, 4, 3
_TINY = float(np.finfo(np.float32).tiny)


def reward_panel(trace: Trace, number: int, step: int, steps: int, width: int) -> Image.Image:
    """Draws what a reward pays over the steps of one episode; what is still to come is pale.

    Args:
        trace: Of this episode alone: values [length].
        number: Which of the run's rewards it is, from 0; it decides the colour.
        step: The state that is shown, from 0; rewards before it are paid.
        steps: How many the axis has room for.
        width: In pixels; the height follows.
    """
    colour = COLOURS[number % len(COLOURS)]
    paid = trace.values[:step]
    value = f" {paid[-1]:z.2f}" if len(paid) else ""
    line = written(f"{trace.name.replace('_', ' ')} reward{value}", width, _SIDE, colour)
    curve = _curve(trace, step, steps, (width, max(16, width // 9)), colour)
    panel = Image.new("RGB", (width, line.height + curve.height), PAPER)
    panel.paste(line, (0, 0))
    panel.paste(curve, (0, line.height))
    return panel


def _curve(
    trace: Trace, step: int, steps: int, size: tuple[int, int], colour: tuple[int, int, int]
) -> Image.Image:
    """Returns the area under the rewards, its base line and a mark at the present step."""
    width, height = (_FINER * side for side in size)
    left, right = _FINER * _SIDE, width - _FINER * _SIDE
    top, bottom = _FINER * _ABOVE, height - _FINER * _BELOW
    edges = left + (right - left) * np.arange(steps + 1) / steps
    levels = bottom - (bottom - top) * _heights(trace)
    picture = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(picture)
    pale = tuple(round(_PALE * part + (1 - _PALE) * 255) for part in colour)
    for at, level in enumerate(levels):
        box = (edges[at], level, edges[at + 1], bottom)
        draw.rectangle(box, fill=colour if at < step else pale)
    draw.line((left, bottom, right, bottom), fill=_AXIS, width=_FINER)
    now = edges[min(step, len(levels))]
    draw.line((now, top - _FINER, now, bottom + _FINER), fill=_CURSOR, width=_FINER)
    return picture.resize(size, Image.Resampling.LANCZOS)


def _heights(trace: Trace) -> Array:
    """Scales rewards to shares of their range; one without bounds has the range of its curve."""
    low = trace.lowest if math.isfinite(trace.lowest) else float(trace.values.min())
    high = trace.highest if math.isfinite(trace.highest) else float(trace.values.max())
    shares = (trace.values - low) / max(high - low, _TINY)
    heights: Array = np.clip(shares, 0.0, 1.0).astype(np.float32)
    return heights
