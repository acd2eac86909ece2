"""The pictures of studies, which are drawn again if their data have changed."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from experiments.stored import RESULTS, ROOT, STUDIES, groups_of, planned
from music_tf.storage.metrics import METRICS
from music_tf.tools.curves import draw_curves
from music_tf.tools.curves import load as load_curve
from music_tf.tools.study import Picture

IMAGES = ROOT / "docs" / "images"
ORIGINS = IMAGES / "made_from.json"
"""Digests of the data of each picture, and of the picture itself."""


def pictures() -> dict[str, tuple[str, Picture]]:
    """Returns study and picture by file name."""
    return {
        f"{picture.name}.png": (path.stem, picture)
        for path in sorted(STUDIES.glob("*.py"))
        for picture in planned(path.stem).pictures
    }


def files_of(name: str, picture: Picture, results: Path = RESULTS) -> list[Path]:
    """Returns the stored results that a picture shows."""
    return [
        file
        for group in groups_of(name, results)
        if not picture.tasks or group.task.env_id in picture.tasks
        if not picture.conditions
        or group.study != name
        or group.condition.name in picture.conditions
        for file in group.files.values()
    ]


def outdated_pictures() -> list[str]:
    """Returns the pictures whose data or file differ from the stored digests."""
    noted = json.loads(ORIGINS.read_text(encoding="utf-8")) if ORIGINS.exists() else {}
    current = {name: _digests(name, *of) for name, of in pictures().items()}
    return [name for name, digests in current.items() if noted.get(name) != digests]


def _digests(name: str, study: str, picture: Picture) -> dict[str, str | None]:
    """Returns digests of the data of a picture, and of the picture."""
    titles = [METRICS[metric] for metric in picture.metrics]
    told = hashlib.sha256(repr((picture, titles)).encode())
    for path in files_of(study, picture):
        told.update(path.read_bytes())
    path = IMAGES / name
    drawn = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return {"results": told.hexdigest(), "picture": drawn}


def draw(names: Sequence[str]) -> None:
    """Draws pictures, and stores the digests of all."""
    drawable = pictures()
    for name in names:
        study, picture = drawable[name]
        curves = [load_curve(path) for path in files_of(study, picture)]
        each = picture.lines == "seeds"
        draw_curves(curves, picture.metrics, picture.axis, IMAGES / name, each)
    if names:
        digests = {name: _digests(name, *of) for name, of in drawable.items()}
        ORIGINS.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
