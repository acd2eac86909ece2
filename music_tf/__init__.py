"""music_tf: agents that learn to control their surroundings without a task reward."""

__version__ = "0.1.0"
