"""Types of settings that several groups share, with their ranges."""

import itertools
import json
import math
import re
from typing import Annotated, Literal, TypeAlias

from music_tf.config.fields import In, Where

_MOST_LAYERS = 16


def _is_constructor(text: str) -> bool:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(arguments, dict) and "render_mode" not in arguments


def _is_schedule(value: tuple[tuple[float, float], ...]) -> bool:
    numbers = [number for point in value for number in point]
    rising = all(before[0] < after[0] for before, after in itertools.pairwise(value))
    return bool(value) and rising and all(map(math.isfinite, numbers))


Schedule: TypeAlias = Annotated[
    tuple[tuple[float, float], ...], Where("finite, with increasing epochs or levels", _is_schedule)
]
"""Values by epoch or level, `((epoch, value), ...)`: linear in between, constant outside."""
Bounds: TypeAlias = Annotated[
    tuple[float, float], Where("the lower first (inf allowed)", lambda ends: ends[0] <= ends[1])
]
Layers: TypeAlias = Annotated[
    tuple[int, ...],
    Where("1 to 16 of them, each", lambda sizes: 1 <= len(sizes) <= _MOST_LAYERS),
    In(1, 8192),
]
OwnLayers: TypeAlias = Annotated[
    tuple[int, ...],
    Where("at most 16 of them, each", lambda sizes: len(sizes) <= _MOST_LAYERS),
    In(1, 8192),
]
JsonObject: TypeAlias = Annotated[
    str, Where('a JSON object such as {"frame_skip": 4}, no render_mode', _is_constructor)
]
Digest: TypeAlias = Annotated[
    str, Where("64 hex digits, or empty", re.compile(r"([0-9a-f]{64})?").fullmatch)
]
Rate: TypeAlias = Annotated[float, In(0, 1)]
Initializer: TypeAlias = Literal["glorot", "lecun_uniform", "he_normal", "orthogonal"]
