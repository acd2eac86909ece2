"""Films what a run has learned, as mp4 or gif."""

import contextlib
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import imageio.v2 as imageio
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import Progress

from music_tf.config.stored import read_run
from music_tf.errors import EnvironmentFault, UsageError
from music_tf.runs.inspection import LoadedRun, describe, load_run
from music_tf.tools.drawing import GOOD, INK, PAPER, sheet, tile
from music_tf.tools.filming import Shot, View, check_skill, film, panels
from music_tf.tools.offscreen import drawing_variables

_MOST_SKILLS, _MOST_ROWS = 10, 4
"""Columns and rows of a sheet; what has no room on it follows on another one."""
_LARGEST_TILE = {".mp4": 480, ".gif": 320}
_LARGEST_SHEET = {".mp4": (1600, 960), ".gif": (960, 640)}
_GIF_COLOURS = 64
_PALETTE_FRAMES = 64
"""From how many of the first frames a gif takes its colours."""
_LAST_STATE_SECONDS = 0.6

Item = TypeVar("Item")
Page = tuple[tuple[Shot, ...], int]
"""Shots that are shown together, and in how many columns."""


def play(
    run: Path, episodes: int, skill: int | None, out: Path, typed_env_id: str | None = None
) -> None:
    """Films the deterministic policy in evaluation episodes, under the goals of training.

    Episodes are shown side by side, where there are several skills with a column for each; the
    path of the film is printed at the end.

    Args:
        run: The run directory.
        episodes: How many, of each skill.
        skill: Which one, None for all.
        out: A file ending in .mp4 or .gif; it appears when it is complete.
        typed_env_id: The environment that the user typed, if any.

    Raises:
        UsageError: No such run or skill, or not a file name for a film.
        EnvironmentFault: Nothing can be drawn here, or the file cannot be written.
        NumbersFault: The policy gives actions that are not finite.
    """
    config = read_run(run, typed_env_id).config
    check_skill(skill, config.skills)
    if out.suffix.lower() not in _LARGEST_TILE or os.path.isdir(out):
        raise UsageError(f"--out: expected a file ending in .mp4 or .gif, got {str(out)[:200]!r}")
    _check_writable(out)
    variables = drawing_variables(config.env_id)
    sheets = pages(episodes, config.acting_skills if skill is None else [skill])
    loaded = load_run(run, typed_env_id, max(len(shots) for shots, _ in sheets))
    console = Console()
    try:
        frames = _frames(loaded, sheets, variables, out.suffix.lower(), console)
        count = write_film(out, frames, loaded.envs.frames_per_second)
    finally:
        loaded.envs.close()
    size = out.stat().st_size / 1000.0
    text = f"{count} frames, {size:.0f} kB: {out}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def pages(episodes: int, skills: Sequence[int]) -> list[Page]:
    """Shares out episodes to sheets: a column a skill, or for one skill about a square."""
    if len(skills) == 1:
        columns = min(_MOST_ROWS, math.ceil(math.sqrt(episodes)))
        shots = [Shot(episode, skills[0]) for episode in range(episodes)]
        return [(page, columns) for page in _batches(shots, _MOST_ROWS**2)]
    return [
        (tuple(Shot(episode, skill) for episode in some for skill in shown), len(shown))
        for shown in _batches(skills, _MOST_SKILLS)
        for some in _batches(range(episodes), _MOST_ROWS)
    ]


def on_grid(tiles: Sequence[Image.Image], columns: int, grid: tuple[int, int]) -> list[Image.Image]:
    """Returns tiles with blank ones to the right and below, so that they fill a larger grid.

    Args:
        tiles: Of one size, row by row.
        columns: How many there are side by side.
        grid: Columns and rows of the result, none fewer than the tiles have.
    """
    blank = Image.new("RGB", tiles[0].size, PAPER)
    across, down = grid
    rows = [[*row, *[blank] * (across - len(row))] for row in _batches(tiles, columns)]
    rows += [[blank] * across] * (down - len(rows))
    return [one for row in rows for one in row]


def caption(shot: Shot, view: View, steps: int, skills: int) -> str:
    """Returns what stands below a picture: skill and episode, the latter counted from 1."""
    named = f"skill {shot.skill}   " if skills > 1 else ""
    return f"{named}episode {shot.episode + 1}   step {view.step}/{steps}"


def write_film(out: Path, frames: Iterable[Image.Image], frames_per_second: int) -> int:
    """Writes a film, which appears when it is complete, and returns its number of frames.

    Args:
        out: Ends in .mp4 (H.264) or .gif.
        frames: Of one size, with even width and height.
        frames_per_second: In 1..60.

    Raises:
        EnvironmentFault: It cannot be written.
    """
    _check_writable(out)
    draft = _draft(out)
    writer = _write_gif if draft.suffix == ".gif" else _write_mp4
    try:
        count = writer(draft, frames, frames_per_second)
        draft.replace(out)
    except OSError as error:
        raise EnvironmentFault(f"{out}: the film cannot be written ({error})") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return count


def _check_writable(out: Path) -> None:
    """Finds out before the work whether a file can be made: ffmpeg says little of why not."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _draft(out).touch()
        _draft(out).unlink()
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error.strerror})") from error


def _draft(out: Path) -> Path:
    return out.with_name(f".{out.stem}.tmp-{os.getpid()}{out.suffix.lower()}")


def _frames(
    loaded: LoadedRun,
    sheets: Sequence[Page],
    variables: Mapping[str, str],
    suffix: str,
    console: Console,
) -> Iterator[Image.Image]:
    """Yields each sheet's film, its last picture for a moment longer, and shows how far it is.

    All sheets have the size of the largest, as the frames of a film must.
    """
    steps, goals = loaded.envs.spec.max_episode_steps, loaded.config.goals == "environment"
    held = round(_LAST_STATE_SECONDS * loaded.envs.frames_per_second)
    across = max(columns for _, columns in sheets)
    down = max(math.ceil(len(shots) / columns) for shots, columns in sheets)
    width = _tile_width(suffix, across, down)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("filming", total=len(sheets) * (steps + 1))
        for shots, columns in sheets:
            for views in film(loaded, shots, variables):
                tiles = [
                    tile(
                        view.image,
                        width,
                        caption(shot, view, steps, loaded.config.skills),
                        GOOD if goals and view.success else INK,
                        panels(view, steps, width),
                    )
                    for shot, view in zip(shots, views, strict=True)
                ]
                picture = sheet(on_grid(tiles, columns, (across, down)), across, describe(loaded))
                yield picture
                progress.advance(task)
            yield from itertools.repeat(picture, held)


def _tile_width(suffix: str, columns: int, rows: int) -> int:
    """Returns the width of a picture, even, so that the whole sheet has a fair size."""
    across, down = _LARGEST_SHEET[suffix]
    width = min(_LARGEST_TILE[suffix], across // columns, down // rows)
    return width - width % 2


def _write_mp4(path: Path, frames: Iterable[Image.Image], frames_per_second: int) -> int:
    count = 0
    options: dict[str, Any] = {
        "format": "FFMPEG",
        "fps": frames_per_second,
        "codec": "libx264",
        "pixelformat": "yuv420p",
        "quality": 7,
        "macro_block_size": 2,
        "ffmpeg_log_level": "error",
    }
    writer: Any = imageio.get_writer(path, **options)
    with contextlib.closing(writer):
        for frame in frames:
            writer.append_data(np.asarray(frame))
            count += 1
    return count


def _write_gif(path: Path, frames: Iterable[Image.Image], frames_per_second: int) -> int:
    """Writes all frames with the same few colours, which keeps the file small and steady."""
    following = iter(frames)
    beginning = list(itertools.islice(following, _PALETTE_FRAMES))
    samples = [*beginning[:: _PALETTE_FRAMES // 8], beginning[-1]]
    palette = sheet(samples, len(samples)).quantize(_GIF_COLOURS)
    indexed = [
        frame.quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in itertools.chain(beginning, following)
    ]
    milliseconds = 10 * round(100 / frames_per_second)
    indexed[0].save(
        path, save_all=True, append_images=indexed[1:], duration=milliseconds, loop=0, optimize=True
    )
    return len(indexed)


def _batches(items: Sequence[Item], size: int) -> Iterator[tuple[Item, ...]]:
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])
