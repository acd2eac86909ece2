"""What a run draws of its evaluations while it trains."""

from pathlib import Path

from music_tf.envs.registry import EnvironmentInfo
from music_tf.storage.metrics import PATHS_TAG, SKILLS_TAG, Drawn
from music_tf.tools.paths import paths_from_above
from music_tf.tools.skills import skills_in_training
from music_tf.types import Episodes


def draw(run: Path, episodes: Episodes, info: EnvironmentInfo) -> list[Drawn]:
    """Returns the pictures of an evaluation: where the object or the skills went, what they earn.

    Args:
        run: The run directory.
        episodes: Of the evaluation.
        info: Where the object is, what supports it, and what tells skills apart.
    """
    paths, skills = paths_from_above(episodes, info), skills_in_training(run, episodes)
    found = []
    if paths is not None:
        found.append(Drawn(PATHS_TAG, "paths_{steps}.png", paths))
    if skills is not None:
        found.append(Drawn(SKILLS_TAG, "skills_in_training.png", skills))
    return found
