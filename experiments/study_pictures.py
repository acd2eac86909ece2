"""The pictures of studies, which are drawn again if their data have changed."""

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from experiments.stored import RESULTS, ROOT, STUDIES, Group, groups_of, planned
from music_tf.tools.curves import draw_curves
from music_tf.tools.curves import load as load_curve
from music_tf.tools.study import Picture

OURS = "music_tf"
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


def shown_by(name: str, picture: Picture, results: Path = RESULTS) -> dict[str, list[Path]]:
    """Returns the stored results that a picture shows, by method, and by library if it has two."""
    groups = [
        group
        for group in groups_of(name, results)
        if not picture.tasks or group.task.env_id in picture.tasks
        if not picture.conditions
        or group.study != name
        or group.condition.name in picture.conditions
    ]
    libraries = {_library(group) for group in groups}
    shown: dict[str, list[Path]] = {}
    for group in groups:
        label, recipe = group.label.removesuffix(" of SB3").replace("`", ""), group.condition.recipe
        if _library(group) == OURS and recipe not in label:
            label += f" ({recipe})"
        label += f", {_library(group)}" if len(libraries) > 1 else ""
        shown.setdefault(label, []).extend(group.files.values())
    return shown


def levels_of(name: str, picture: Picture) -> dict[str, float]:
    """Returns the thresholds that all tasks of a picture have."""
    shown = [task for task in planned(name).tasks if task.env_id in (picture.tasks or task.env_id)]
    return dict(set.intersection(*({*task.level.items()} for task in shown)))


def _library(group: Group) -> str:
    return "Stable-Baselines3" if group.condition.recipe.startswith("stable-") else OURS


def outdated_pictures() -> list[str]:
    """Returns the pictures whose data or file differ from the stored digests."""
    noted = json.loads(ORIGINS.read_text(encoding="utf-8")) if ORIGINS.exists() else {}
    current = {name: _digests(name, *of) for name, of in pictures().items()}
    return [name for name, digests in current.items() if noted.get(name) != digests]


def _digests(name: str, study: str, picture: Picture) -> dict[str, str | None]:
    """Returns digests of the data of a picture, and of the picture."""
    shown = shown_by(study, picture)
    drawn_by = picture, list(shown), sorted(levels_of(study, picture).items())
    told = hashlib.sha256(repr(drawn_by).encode())
    for path in itertools.chain.from_iterable(shown.values()):
        told.update(path.read_bytes())
    path = IMAGES / name
    drawn = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return {"results": told.hexdigest(), "picture": drawn}


def draw(names: Sequence[str]) -> None:
    """Draws pictures, and stores the digests of all."""
    drawable = pictures()
    for name in names:
        study, picture = drawable[name]
        levels = levels_of(study, picture)
        curves = [
            load_curve(path)._replace(group=label, levels=levels)
            for label, paths in shown_by(study, picture).items()
            for path in paths
        ]
        draw_curves(curves, picture.metrics, picture.axis, IMAGES / name)
    if names:
        digests = {name: _digests(name, *of) for name, of in drawable.items()}
        ORIGINS.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
