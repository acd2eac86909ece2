"""Curves, films, pages, studies and checks; no other folder but `cli` imports them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from music_tf.tools.evaluation_pictures import Drawing


def new_drawing() -> "Drawing":
    """Returns the drawing of evaluations during training; loads Pillow."""
    from music_tf.tools.evaluation_pictures import Drawing  # noqa: PLC0415 - numpy, Pillow

    return Drawing()
