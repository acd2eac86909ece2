"""One episode as a row of pictures, for a page that shows no films."""

from pathlib import Path

import numpy as np

from music_tf.config.stored import read_run
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.training.inspection import load_run
from music_tf.viewing.drawing import sheet, tile
from music_tf.viewing.filming import Shot, check_skill, film
from music_tf.viewing.offscreen import drawing_variables

_TILE_WIDTH = 240


def film_strip(
    run: Path,
    out_png: Path,
    episode: int = 1,
    frames: int = 6,
    skill: int = 0,
    typed_env_id: str | None = None,
) -> None:
    """Writes a PNG with states of one evaluation episode, evenly spaced from first to last.

    Args:
        run: The run directory.
        out_png: A file ending in .png.
        episode: Number of the episode, from 1, as films show it.
        frames: How many pictures, at least 2; fewer where the episode has fewer states.
        skill: Which skill acts, from 0.
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
    shots = [Shot(episode - 1, skill)]
    loaded = load_run(run, typed_env_id, environments=1)
    try:
        states = [views[0] for views in film(loaded, shots, variables)]
    finally:
        loaded.envs.close()
    shown = np.unique(np.linspace(0, len(states) - 1, frames).round().astype(int))
    tiles = [tile(states[at].image, _TILE_WIDTH, f"step {states[at].step}") for at in shown]
    try:
        out_png.parent.mkdir(parents=True, exist_ok=True)
        sheet(tiles, len(tiles)).save(out_png)
    except OSError as error:
        raise EnvironmentFault(f"{out_png}: cannot be written ({error})") from error
