"""An episode of each skill as a row of pictures, for a page that shows no films."""

from pathlib import Path

import numpy as np
from PIL import Image

from music_tf.config.stored import read_run
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs.inspection import LoadedRun, load_run
from music_tf.tools.drawing import sheet, tile
from music_tf.tools.filming import Shot, View, check_skill, film, panels
from music_tf.tools.offscreen import drawing_variables

_TILE_WIDTH = 240


def film_strip(
    run: Path,
    out_png: Path,
    episode: int = 1,
    frames: int = 6,
    skill: int | None = None,
    typed_env_id: str | None = None,
) -> None:
    """Writes a PNG with states of an evaluation episode, evenly spaced from first to last.

    Below each picture stands what the learned rewards pay up to there; each skill has a row.

    Args:
        run: The run directory.
        out_png: A file ending in .png.
        episode: Number of the episode, from 1, as films show it.
        frames: How many pictures, at least 2; fewer where the episode has fewer states.
        skill: Which skill acts, from 0; None for all.
        typed_env_id: The environment that the user typed, if any.

    Raises:
        UsageError: No such run, skill or episode, or not a file name for a picture.
        EnvironmentFault: Nothing can be drawn here, or the file cannot be written.
    """
    config = read_run(run, typed_env_id).config
    check_skill(skill, config.skills)
    if out_png.suffix.lower() != ".png":
        raise UsageError(f"out: expected a file ending in .png, got {str(out_png)[:200]!r}")
    for name, value, least in (("episode", episode, 1), ("frames", frames, 2)):
        if value < least:
            raise UsageError(f"{name}: expected a number from {least} on, got {value}")
    variables = drawing_variables(config.env_id)
    shots = [Shot(episode - 1, one) for one in (config.acting_skills if skill is None else [skill])]
    loaded = load_run(run, typed_env_id, environments=len(shots))
    try:
        columns = [
            [_tile(loaded, shot, view) for shot, view in zip(shots, views, strict=True)]
            for views in film(loaded, shots, variables)
        ]
    finally:
        loaded.envs.close()
    shown = np.unique(np.linspace(0, len(columns) - 1, frames).round().astype(int))
    tiles = [columns[at][row] for row in range(len(shots)) for at in shown]
    try:
        out_png.parent.mkdir(parents=True, exist_ok=True)
        sheet(tiles, len(shown)).save(out_png)
    except OSError as error:
        raise EnvironmentFault(f"{out_png}: cannot be written ({error})") from error


def _tile(loaded: LoadedRun, shot: Shot, view: View) -> Image.Image:
    named = f"skill {shot.skill}   " if loaded.config.skills > 1 else ""
    steps = loaded.envs.spec.max_episode_steps
    return tile(
        view.image,
        _TILE_WIDTH,
        f"{named}step {view.step}",
        panels=panels(view, steps, _TILE_WIDTH),
    )
