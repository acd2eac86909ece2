"""music_tf: agents that learn to control their surroundings without a task reward."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_tf.storage.policy import load_policy

__version__ = "0.1.0"
__all__ = ["__version__", "load_policy"]


def __getattr__(name: str) -> Any:
    """Imports `load_policy` when it is asked for, so that the command line starts light."""
    if name != "load_policy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from music_tf.storage.policy import load_policy  # noqa: PLC0415 - numpy

    return load_policy
