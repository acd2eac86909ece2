"""Decisions with which a run begins; apart from `runs.start`, which starts what reads them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from music_tf.storage.warm_start import LoadedWarmStart


class StartDecisions(NamedTuple):
    """What is decided before a rank learns or acts."""

    path: Path
    warm_start: "LoadedWarmStart | None" = None
    """Warm start from an earlier run, the same on every rank."""
    acts: bool = False
    claim: Callable[[], str | None] | None = None
    """Limits the threads of a learning rank and claims a GPU; returns the GPU's name, if any."""
