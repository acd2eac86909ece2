"""music_tf: agents that learn to control their surroundings without a task reward."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_tf.api import Run, load_run, train
    from music_tf.config.world import World, register_world
    from music_tf.envs.switching import register_tasks
    from music_tf.errors import (
        EnvironmentFault,
        Hanging,
        MusicError,
        NumbersFault,
        Stopped,
        UsageError,
    )
    from music_tf.runs.callbacks import Callback
    from music_tf.storage.loading import load_policy

__version__ = "1.0.0"
__all__ = [
    "Callback",
    "EnvironmentFault",
    "Hanging",
    "MusicError",
    "NumbersFault",
    "Run",
    "Stopped",
    "UsageError",
    "World",
    "__version__",
    "load_policy",
    "load_run",
    "register_tasks",
    "register_world",
    "train",
]
_PLACES = {
    "music_tf.api": ("Run", "load_run", "train"),
    "music_tf.config.world": ("World", "register_world"),
    "music_tf.envs.switching": ("register_tasks",),
    "music_tf.runs.callbacks": ("Callback",),
    "music_tf.storage.loading": ("load_policy",),
}


def __getattr__(name: str) -> Any:
    """Imports public names on first use, so that the command line starts fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = next((place for place, names in _PLACES.items() if name in names), "music_tf.errors")
    return getattr(importlib.import_module(place), name)
