"""Films what a run has learned, as mp4 or gif, or as a strip of pictures.

TensorFlow and Mesa, which draws where there is no graphics card, each bring an LLVM of their own,
and a process that has loaded both crashes. So this module acts with numpy and never loads
TensorFlow: what the networks of rewards say comes from another process.
"""

import contextlib
import functools
import itertools
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import imageio.v2 as imageio
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.progress import Progress

from music_tf import rollout
from music_tf.config.stored import read_run
from music_tf.envs.registry import is_known
from music_tf.errors import EXIT_USAGE, EnvironmentFault, UsageError
from music_tf.process import prepare_tensorflow, run_command
from music_tf.rollout import Conditions
from music_tf.runs.inspection import LoadedRun, describe, load_run
from music_tf.runs.judging import Trace
from music_tf.tools.doctor import DEBIAN_PACKAGES, working_backend
from music_tf.training.evaluation import evaluation_conditions
from music_tf.types import Episodes

INK, PAPER, GOOD = (30, 30, 30), (255, 255, 255), (0, 120, 40)
_BETWEEN, _AXIS, _CURSOR = (205, 205, 205), (150, 150, 150), (40, 40, 40)
_GAP = 4
_TITLE_SIZES, _CAPTION_SIZES, _NOTE_SIZE = range(18, 8, -1), range(15, 8, -1), 12
_MOST_SKILLS, _MOST_ROWS = 10, 4
"""Columns and rows of a sheet; what has no room on it follows on another one."""
_LARGEST_TILE = {".mp4": 480, ".gif": 320}
_LARGEST_SHEET = {".mp4": (1600, 960), ".gif": (960, 640)}
_STRIP_TILE = 240
_GIF_COLOURS = 64
_PALETTE_FRAMES = 64
"""From how many of the first frames a gif takes its colours."""
_LAST_STATE_SECONDS = 0.6
_SAME_STATE = 1e-4
_REWARD_SECONDS = 600.0
_COLOURS = ((0, 104, 171), (199, 92, 0), (90, 60, 150), (0, 115, 80), (170, 35, 75), (95, 80, 60))
"""Of the rewards of a run by their order, and then from the front again."""
_PALE = 0.22
"""Share of its colour that a reward keeps in the part of the episode that is still to come."""
_FINER = 3
"""Curves are drawn this much larger and then reduced, which makes their edges smooth."""
_SIDE, _ABOVE, _BELOW = 6, 4, 3
_TINY = float(np.finfo(np.float32).tiny)

Colour = tuple[int, int, int]
Item = TypeVar("Item")


class Shot(NamedTuple):
    """Which episode is filmed."""

    episode: int
    """Index in the evaluation protocol, from 0."""
    skill: int


Page = tuple[tuple[Shot, ...], int]
"""Shots that are shown together, and in how many columns."""


class View(NamedTuple):
    """One episode at one time."""

    image: npt.NDArray[np.uint8]  # [height, width, 3]
    step: int
    success: bool
    """Whether it is over and has succeeded."""
    traces: Sequence[Trace] = ()
    """What each learned reward pays along the whole episode: values [length]."""


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
    _check_skill(skill, config.skills)
    if out.suffix.lower() not in _LARGEST_TILE or os.path.isdir(out):
        raise UsageError(f"--out: expected a file ending in .mp4 or .gif, got {str(out)[:200]!r}")
    _check_writable(out)
    os.environ.update(drawing_variables(config.env_id))
    sheets = pages(episodes, config.acting_skills if skill is None else [skill])
    loaded = load_run(run, typed_env_id, max(len(shots) for shots, _ in sheets))
    console = Console()
    try:
        frames = _frames(loaded, sheets, out.suffix.lower(), console)
        count = write_film(out, frames, loaded.envs.frames_per_second)
    finally:
        loaded.envs.close()
    size = out.stat().st_size / 1000.0
    text = f"{count} frames, {size:.0f} kB: {out}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def strip(
    run: Path,
    out: Path,
    episode: int = 1,
    frames: int = 6,
    skill: int | None = None,
    typed_env_id: str | None = None,
) -> None:
    """Writes a PNG with states of an evaluation episode, for a page that shows no films.

    The states are evenly spaced from first to last. Below each picture stands what the learned
    rewards pay up to there; each skill has a row.

    Args:
        run: The run directory.
        out: A file ending in .png.
        episode: Number of the episode, from 1, as films show it.
        frames: How many pictures, at least 2; fewer where the episode has fewer states.
        skill: Which skill acts, from 0; None for all.
        typed_env_id: The environment that the user typed, if any.

    Raises:
        UsageError: No such run, skill or episode, or not a file name for a picture.
        EnvironmentFault: Nothing can be drawn here, or the file cannot be written.
    """
    config = read_run(run, typed_env_id).config
    _check_skill(skill, config.skills)
    if out.suffix.lower() != ".png":
        raise UsageError(f"out: expected a file ending in .png, got {str(out)[:200]!r}")
    for name, value, least in (("episode", episode, 1), ("frames", frames, 2)):
        if value < least:
            raise UsageError(f"{name}: expected a number from {least} on, got {value}")
    os.environ.update(drawing_variables(config.env_id))
    shots = [Shot(episode - 1, one) for one in (config.acting_skills if skill is None else [skill])]
    loaded = load_run(run, typed_env_id, environments=len(shots))
    steps = loaded.envs.spec.max_episode_steps
    try:
        states = list(film(loaded, shots))
    finally:
        loaded.envs.close()
    shown = np.unique(np.linspace(0, len(states) - 1, frames).round().astype(int))
    tiles = []
    for row, shot in enumerate(shots):
        named = f"skill {shot.skill}   " if config.skills > 1 else ""
        for view in (states[at][row] for at in shown):
            panels = reward_panels(view, steps, _STRIP_TILE)
            tiles.append(tile(view.image, _STRIP_TILE, f"{named}step {view.step}", panels=panels))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        sheet(tiles, len(shown)).save(out)
    except OSError as error:
        raise EnvironmentFault(f"{out}: cannot be written ({error})") from error


def drawing_variables(env_id: str) -> dict[str, str]:
    """Returns the environment variables with which an environment can be drawn here.

    MuJoCo reads them when it is imported: they must be set before.

    Raises:
        EnvironmentFault: The environment is one of MuJoCo's, no OpenGL library loads without a
            screen, and there is none.
    """
    name = env_id.rpartition(":")[2]
    if name.startswith("music_tf/"):  # the toys draw themselves
        return {}
    has_screen = any(os.environ.get(screen) for screen in ("DISPLAY", "WAYLAND_DISPLAY"))
    backend = working_backend() or ("glfw" if has_screen else None)
    if backend is None and is_known(name):
        packages = [f"  apt-get install {names}   ({gl})" for gl, names in DEBIAN_PACKAGES.items()]
        raise EnvironmentFault(
            f"{name}: nothing can be drawn here: there is no screen, and neither EGL nor OSMesa "
            "loads\ncure, as root on Debian or Ubuntu, one of:\n"
            + "\n".join(packages)
            + "\ntraining and evaluate draw nothing and work without; to check: music-tf doctor"
        )
    return {} if backend is None else {"MUJOCO_GL": backend}


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


def film(loaded: LoadedRun, shots: Sequence[Shot]) -> Iterator[list[View]]:
    """Plays episodes side by side, under the goals of training, and shows each of their states.

    They are played first, since an environment may spoil an episode and rewards are drawn over
    the whole of it, and then once more from the same seeds and actions to be drawn.

    Args:
        loaded: The run; must have an environment for each shot.
        shots: What to film.

    Yields:
        A view of each shot: the first states, then those after each step. Episodes that are
        over stand still, and when all of them are, the film ends.

    Raises:
        EnvironmentFault: An environment breaks, cannot be drawn, or does not repeat itself.
        NumbersFault: The policy gives actions that are not finite.
    """
    config, envs = loaded.config, loaded.envs
    zero_goals, goal_dim = config.goals == "zero", envs.spec.goal_dim
    single = [
        evaluation_conditions(range(at, at + 1), goal_dim, zero_goals, config.skills, skill)
        for at, skill in shots
    ]
    conditions = Conditions(
        np.concatenate([one.seeds for one in single]),
        np.zeros([len(shots), goal_dim], np.float32) if zero_goals else None,
        np.concatenate([one.skills for one in single]),
    )
    played = rollout.play(envs, loaded.policy, conditions, None)
    paid = rewards_along(loaded, played)
    traces = [
        [trace._replace(values=trace.values[episode, :steps]) for trace in paid]
        for episode, steps in enumerate(played.length)
    ]
    active = list(range(len(shots)))
    images = [np.empty([0, 0, 3], np.uint8) for _ in shots]
    shown = envs.reset(active, played.seed.tolist(), conditions.goals).observation
    for step in range(int(played.length.max()) + 1):
        if step:
            active = [index for index in active if played.length[index] >= step]
            shown = envs.step(played.action[active, step - 1], active).observation
        if not np.allclose(shown, played.observation[active, step], atol=_SAME_STATE):
            raise EnvironmentFault(
                f"{config.env_id}: the same seed and actions do not lead to the same states at "
                f"step {step}, so it cannot be filmed; see music-tf check-env"
            )
        for index in active:
            images[index] = envs.render(index)
        sizes = {image.shape for image in images}
        if len(sizes) > 1:
            raise EnvironmentFault(f"{config.env_id}: pictures differ in size: {sorted(sizes)}")
        now = np.minimum(step, played.length)
        succeeds = played.success & (now == played.length)
        yield list(map(View, images, now.tolist(), succeeds.tolist(), traces))


def rewards_along(loaded: LoadedRun, played: Episodes) -> list[Trace]:
    """Returns what each learned reward pays along episodes, as another process finds out.

    Raises:
        UsageError: The weights of the rewards do not fit the configuration.
        EnvironmentFault: The process failed otherwise.
    """
    if not loaded.learned:
        return []
    prepare_tensorflow()
    with tempfile.TemporaryDirectory(prefix="music_tf-") as folder:
        job, found = Path(folder) / "job.npz", Path(folder) / "found.npz"
        np.savez(job, allow_pickle=False, **(played.named() | loaded.learned))
        words = [str(loaded.path), str(job), str(found), loaded.config.env_id]
        done = run_command(
            [sys.executable, "-P", "-m", "music_tf.runs.learned", *words],
            seconds=_REWARD_SECONDS,
            environment={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MUJOCO_GL": ""},
        )
        if not done.ok:
            kind = UsageError if done.code == EXIT_USAGE else EnvironmentFault
            why = done.output.strip() or done.reason
            raise kind(f"{loaded.path}: what its rewards pay cannot be drawn\n{why}")
        with np.load(found, allow_pickle=False) as file:
            arrays = dict(file)
    return [
        Trace(name, values, *map(float, arrays[f"{name}/range"]))
        for name, values in arrays.items()
        if "/" not in name
    ]


def caption(shot: Shot, view: View, steps: int, skills: int) -> str:
    """Returns what stands below a picture: skill and episode, the latter counted from 1."""
    named = f"skill {shot.skill}   " if skills > 1 else ""
    return f"{named}episode {shot.episode + 1}   step {view.step}/{steps}"


def tile(
    image: npt.NDArray[np.uint8],
    width: int,
    caption: str,
    colour: Colour = INK,
    panels: Sequence[Image.Image] = (),
) -> Image.Image:
    """Returns a picture of the given width with panels and its caption below.

    Args:
        image: Shape [height, width, 3].
        width: In pixels.
        caption: One line; the letters shrink where it is long.
        colour: Of the caption.
        panels: Of the same width.
    """
    picture = Image.fromarray(image)
    height = max(1, round(width * picture.height / picture.width))
    grows = width > picture.width
    filter_ = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
    return _stacked(
        [
            picture.resize((width, height), filter_),
            *panels,
            _line(caption, width, _CAPTION_SIZES, colour),
        ]
    )


def sheet(tiles: Sequence[Image.Image], columns: int, title: str = "") -> Image.Image:
    """Returns tiles of equal size in rows, with even width and height as video formats want."""
    width, height = tiles[0].size
    rows = math.ceil(len(tiles) / columns)
    whole = columns * (width + _GAP) - _GAP
    head = _line(title, whole, _TITLE_SIZES, INK) if title else None
    top = head.height + _GAP if head else 0
    total = top + rows * (height + _GAP) - _GAP
    result = Image.new("RGB", (whole + whole % 2, total + total % 2), _BETWEEN)
    if head is not None:
        result.paste(head, (0, 0))
    for number, one in enumerate(tiles):
        row, column = divmod(number, columns)
        result.paste(one, (column * (width + _GAP), top + row * (height + _GAP)))
    return result


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


def reward_panels(view: View, steps: int, width: int) -> list[Image.Image]:
    """Returns what stands between a picture and its caption: a panel for each learned reward."""
    return [
        reward_panel(trace, number, view.step, steps, width)
        for number, trace in enumerate(view.traces)
    ]


def reward_panel(trace: Trace, number: int, step: int, steps: int, width: int) -> Image.Image:
    """Draws what a reward pays over the steps of one episode; what is still to come is pale.

    Args:
        trace: Of this episode alone: values [length]. Where nothing bounds it, the curve fills
            the height.
        number: Which of the run's rewards it is, from 0; it decides the colour.
        step: The state that is shown, from 0; rewards before it are paid.
        steps: How many the axis has room for.
        width: In pixels; the height follows.
    """
    name, colour = f"{trace.name.replace('_', ' ')} reward", _COLOURS[number % len(_COLOURS)]
    paid = trace.values[:step]
    text = Image.new("RGB", (width, _NOTE_SIZE + 8), PAPER)
    ImageDraw.Draw(text).text(
        (_SIDE, text.height / 2),
        f"{name} {paid[-1]:z.2f}" if len(paid) else name,
        fill=colour,
        font=_font(_NOTE_SIZE),
        anchor="lm",
    )
    low = trace.lowest if math.isfinite(trace.lowest) else float(trace.values.min())
    high = trace.highest if math.isfinite(trace.highest) else float(trace.values.max())
    shares = np.clip((trace.values - low) / max(high - low, _TINY), 0.0, 1.0)
    size = width, max(16, width // 9)
    curve = Image.new("RGB", (_FINER * size[0], _FINER * size[1]), PAPER)
    left, right = _FINER * _SIDE, curve.width - _FINER * _SIDE
    top, bottom = _FINER * _ABOVE, curve.height - _FINER * _BELOW
    edges = left + (right - left) * np.arange(steps + 1) / steps
    draw = ImageDraw.Draw(curve)
    pale = tuple(round(_PALE * part + (1 - _PALE) * 255) for part in colour)
    for at, level in enumerate(bottom - (bottom - top) * shares.astype(np.float32)):
        box = (edges[at], level, edges[at + 1], bottom)
        draw.rectangle(box, fill=colour if at < step else pale)
    draw.line((left, bottom, right, bottom), fill=_AXIS, width=_FINER)
    now = edges[min(step, len(shares))]
    draw.line((now, top - _FINER, now, bottom + _FINER), fill=_CURSOR, width=_FINER)
    return _stacked([text, curve.resize(size, Image.Resampling.LANCZOS)])


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


def _check_skill(skill: int | None, skills: int) -> None:
    if skill is not None and not 0 <= skill < skills:
        known = f"0..{skills - 1}, or all" if skills > 1 else "0: this run has one skill"
        raise UsageError(f"--skill: expected {known}; got {skill}")


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
    loaded: LoadedRun, sheets: Sequence[Page], suffix: str, console: Console
) -> Iterator[Image.Image]:
    """Yields each sheet's film, its last picture for a moment longer, and shows how far it is.

    All sheets have the size of the largest, as the frames of a film must.
    """
    steps, goals = loaded.envs.spec.max_episode_steps, loaded.config.goals == "environment"
    held = round(_LAST_STATE_SECONDS * loaded.envs.frames_per_second)
    across = max(columns for _, columns in sheets)
    down = max(math.ceil(len(shots) / columns) for shots, columns in sheets)
    room = _LARGEST_SHEET[suffix]
    width = min(_LARGEST_TILE[suffix], room[0] // across, room[1] // down)
    width -= width % 2
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("filming", total=len(sheets) * (steps + 1))
        for shots, columns in sheets:
            for views in film(loaded, shots):
                tiles = [
                    tile(
                        view.image,
                        width,
                        caption(shot, view, steps, loaded.config.skills),
                        GOOD if goals and view.success else INK,
                        reward_panels(view, steps, width),
                    )
                    for shot, view in zip(shots, views, strict=True)
                ]
                picture = sheet(on_grid(tiles, columns, (across, down)), across, describe(loaded))
                yield picture
                progress.advance(task)
            yield from itertools.repeat(picture, held)


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


def _stacked(parts: Sequence[Image.Image]) -> Image.Image:
    """Returns pictures of one width below each other."""
    result = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)), PAPER)
    top = 0
    for part in parts:
        result.paste(part, (0, top))
        top += part.height
    return result


def _line(text: str, width: int, sizes: range, colour: Colour) -> Image.Image:
    """Returns a strip with one line of text, centred; its height depends on its width alone."""
    line = Image.new("RGB", (width, sizes.start + 8), PAPER)
    draw = ImageDraw.Draw(line)
    fitting = (size for size in sizes if draw.textlength(text, _font(size)) <= width - _GAP)
    font = _font(next(fitting, sizes[-1]))
    draw.text((width / 2, line.height / 2), text, fill=colour, font=font, anchor="mm")
    return line


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
