"""Pictures of evaluations during training."""

import time
from pathlib import Path

from music_tf.envs.registry import EnvironmentInfo
from music_tf.storage.metrics import PATHS_TAG, SKILLS_TAG, EvaluationPicture
from music_tf.tools.object_paths import paths_from_above
from music_tf.tools.skill_pictures import skills_in_training
from music_tf.types import Episodes

SHARE = 0.03
"""Largest share of the time of a run for pictures of skills, a quarter of a second each."""


class Drawing:
    """Draws paths of the object or of skills, and returns by skill within a `share` of the time."""

    def __init__(self, share: float = SHARE) -> None:
        self._share = share
        self._due = 0.0

    def __call__(
        self, run: Path, episodes: Episodes, info: EnvironmentInfo
    ) -> list[EvaluationPicture]:
        pictures = []
        paths = paths_from_above(episodes, info)
        if paths is not None:
            pictures.append(EvaluationPicture(PATHS_TAG, "paths_{steps}.png", paths))
        start = time.monotonic()
        skills = skills_in_training(run, episodes) if start >= self._due else None
        if skills is not None:
            self._due = start + (time.monotonic() - start) / self._share
            pictures.append(EvaluationPicture(SKILLS_TAG, "skills_in_training.png", skills))
        return pictures
