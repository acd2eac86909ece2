"""Whether numbers can be computed with, asked wherever they enter or leave a stage."""

import numpy as np
import numpy.typing as npt

from music_tf.types import BoolArray

_LARGEST = float(np.finfo(np.float32).max)


def finite(values: npt.ArrayLike) -> BoolArray:
    """Returns which values are numbers in single precision, where 1e39 is infinite."""
    usable: BoolArray = np.abs(values) <= _LARGEST
    return usable


def all_finite(values: npt.ArrayLike) -> bool:
    """Whether all values are numbers in single precision."""
    return bool(np.all(finite(values)))
