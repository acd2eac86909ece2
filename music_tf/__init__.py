"""music_tf: agents that learn to control their surroundings without a task reward."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_tf.config.world import World, register_world
    from music_tf.storage.policy import load_policy

__version__ = "0.1.0"
__all__ = ["World", "__version__", "load_policy", "register_world"]
_PLACES = {
    "music_tf.config.world": ("World", "register_world"),
    "music_tf.storage.policy": ("load_policy",),
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, so that the command line starts light."""
    for place, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(place), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
