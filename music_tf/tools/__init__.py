"""What people look at; nothing below imports it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from music_tf.tools.pictures import Drawing


def new_drawing() -> "Drawing":
    """Returns what draws evaluations of a run that trains; loads Pillow."""
    from music_tf.tools.pictures import Drawing  # noqa: PLC0415 - numpy, Pillow

    return Drawing()
