"""What a run is begun with."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from music_tf.storage.start import Heritage


def _nothing() -> None:
    return None


class Begun(NamedTuple):
    """What `runs.start` decides before a rank learns or acts."""

    path: Path
    """The run directory."""
    heritage: "Heritage | None" = None
    """What a new run takes over from an earlier one, the same on every rank."""
    acts: bool = False
    """Whether this rank acts while others learn."""
    claim: Callable[[], str | None] = _nothing
    """Takes the threads and the GPU of this process; returns the name of the GPU, if any."""
