"""Films the policy of a run, as mp4 or gif, or as a strip of pictures.

Without a graphics card Mesa renders. Mesa and TensorFlow each contain LLVM, and a process that has
loaded both crashes. So this module acts with numpy and never loads TensorFlow: a subprocess
computes the learned rewards.
"""

import contextlib
import dataclasses
import importlib
import itertools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import imageio.v2 as imageio
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw
from rich.progress import track

from music_tf import rollout
from music_tf.config.changes import LEARNED
from music_tf.config.names import ROBOTICS, WITHOUT_OPENGL, is_local, is_one_of, without_module
from music_tf.config.settings import Config
from music_tf.errors import EXIT_USAGE, EnvironmentFault, UsageError
from music_tf.process.children import Probe, run_command
from music_tf.process.tensorflow_start import NO_GPU, prepare_tensorflow
from music_tf.reading.stored import read_run
from music_tf.rollout import Conditions
from music_tf.runs.comparison import Trace
from music_tf.runs.evaluation_file import brake_distance
from music_tf.runs.loaded_run import LoadedRun, load_run
from music_tf.runs.progress import Progress, cursor_moves
from music_tf.runs.zero_shot import (
    GoalGuide,
    Places,
    ReachingPolicy,
    guide_to_goals,
    moving_goals,
    points_of,
    reaching,
)
from music_tf.tools.doctor import DEBIAN_PACKAGES, working_backend
from music_tf.tools.drawing import BETWEEN, GAP, INK, PAPER, appearing, grid, line, stacked
from music_tf.tools.pace import Pace, Steps, pace_of, reported
from music_tf.training.evaluation import evaluation_conditions
from music_tf.types import Episodes

_GOOD, _AXIS, _CURSOR = "#007828", "#969696", "#282828"
_TITLE, _CAPTION, _NOTE = 18, 15, 12
"""Sizes of letters."""
_MOST_SKILLS, _MOST_ROWS, _MOST_TILES = 10, 4, 40
"""Most columns and rows of a sheet, and most tiles of a sheet with more skills than columns. The
rest follows on further sheets."""
_MOST_OF_A_VISIT = 7
"""Most episodes of a visit that are shown side by side."""
_LARGEST_TILE = {".mp4": 480, ".gif": 320}
_LARGEST_SHEET = {".mp4": (1600, 960), ".gif": (960, 640)}
_STRIP_TILE = 240
_PALETTE_FRAMES = 64
"""Number of first frames from which a gif takes its colours."""
_LAST_STATE_SECONDS = 0.6
_COLOURS = ("#0068ab", "#c75c00", "#5a3c96", "#007350", "#aa234b", "#5f503c")
"""Colours of the rewards of a run, in their order, repeated from the front."""
_PALE = 0.22
"""Opacity of the curve of a reward in the rest of the episode."""
_FINER = 3
"""Factor by which curves are drawn larger and then reduced, for smooth edges."""
_SIDE, _ABOVE, _BELOW = 6, 4, 3

Item = TypeVar("Item")


class Shot(NamedTuple):
    """Which episode is filmed."""

    episode: int
    """Index in the evaluation protocol, from 0."""
    skill: int | None
    """None for continuous conditions, which are those of evaluation. For a run that adapts, the
    number of an evaluation task; `episode` then counts episodes of a visit to it."""


class Frame(NamedTuple):
    """A picture of a film."""

    image: Image.Image
    times: int = 1
    """Its duration in frames of the film."""


Page = tuple[Sequence[Shot], int]
"""Shots that are shown together, and the number of columns."""


@dataclasses.dataclass(frozen=True)
class Aim:
    """Goal of a film for a run that was trained without goals."""

    place: tuple[float, ...] = ()
    """Values of the columns that its embedding sees, or that distinguish its skills; empty: the
    environment's own goals, another one in each episode."""
    path: str = ""
    """Path of a goal that moves instead: the name of a shape, or a CSV file."""

    @property
    def option(self) -> str:
        """The option of `play` that asks for it."""
        return "--path" if self.path else "--reach" if self.place else "--zero-shot"


class View(NamedTuple):
    """One episode at one time."""

    image: npt.NDArray[np.uint8]  # [height, width, 3]
    step: int
    success: bool
    """Whether it is over and has succeeded."""
    traces: Sequence[Trace] = ()
    """Each learned reward along the whole episode: values [length]."""
    last: int = 0
    """The step at which it ends."""
    note: str = ""
    """Further text about the episode."""


class ShownMoments(NamedTuple):
    """The states of an episode in a picture; by default six of the first episode."""

    episode: int = 1
    """Counted from 1."""
    frames: int = 6
    """Number of states, at least 2."""


SIX = ShownMoments()


def play(
    run: Path,
    episodes: int,
    skills: Sequence[int] | Aim,
    out: Path,
    typed_env_id: str | None = None,
    **where: str,
) -> None:
    """Films the deterministic policy in evaluation episodes, under the goals of training.

    Episodes are shown side by side, with a column for each skill. Content, time left and the path
    of the film are printed.

    Args:
        run: The run directory.
        episodes: How many, of each skill.
        skills: Which ones; none for all, or for continuous conditions. Or an aim: then goals are
            drawn, but the policy knows them by its conditions alone. It stops at the distance that
            `evaluate --zero-shot` found best, if that was measured.
        out: A file ending in .mp4 or .gif, written when it is complete.
        typed_env_id: The environment that the user typed, if any.
        where: `stage` and `env_overrides`, as of `load_run`; by default each skill is filmed in the
            stage in which it was `LEARNED`.
    """
    config = read_run(run, typed_env_id).config
    asked = _skills(config, skills)  # refuses before loading
    fewest = 1 if config.incremental.on else len(asked)  # the rest may not be learned yet
    tried = (sheets_of(config, episodes, asked[:n]) for n in range(fewest, len(asked) + 1))
    most = max(len(shots) for sheets in tried for shots, _ in sheets)
    progress = Progress()

    def say(text: str) -> None:
        progress.banner([text])

    with appearing(out) as draft:
        os.environ.update(drawing_variables(config.env_id))
        loaded = load_run(run, typed_env_id, most, **{"stage": LEARNED, **where})
        with contextlib.closing(loaded.envs) as envs:
            config = loaded.config  # without skills that are not learned yet
            sheets = sheets_of(config, episodes, _skills(config, skills))
            steps, pace = envs.spec.max_episode_steps, pace_of(envs.steps_per_second)
            aim = skills if isinstance(skills, Aim) else None
            if aim is not None:
                _guide_of(loaded, aim)  # refuses before anything is announced
            say(_announcement(sheets, steps, pace))
            frames = frames_of(loaded, sheets, draft.suffix, pace, aim)
            most = len(sheets) * pace.most_pictures(steps)
            if cursor_moves(sys.stdout):
                shown = track(frames, "filming", most, transient=True)
            else:
                shown = reported(frames, most, say)
            count = write_film(draft, shown, pace.frames_per_second)
        text = f"{count} frames, {draft.stat().st_size / 1000.0:.0f} kB: {out}"
    say(text)


def _announcement(sheets: Sequence[Page], steps: int, pace: Pace) -> str:
    episodes = sum(len(shots) for shots, _ in sheets)
    step = "every step" if pace.every == 1 else f"one step in {pace.every}"
    return (
        f"filming {episodes} episode{'s' * (episodes > 1)} of up to {steps} steps: {step}, "
        f"{pace.frames_per_second:.3g} frames a second; episodes are played first"
    )


def strip(
    run: Path,
    out: Path,
    shown: ShownMoments = SIX,
    skills: Sequence[int] | Aim = (),
    typed_env_id: str | None = None,
    **where: str,
) -> None:
    """Writes a PNG with states of an evaluation episode, for a page that shows no films.

    The states are evenly spaced from first to last, with the learned rewards so far below each.
    Every skill has a row. For a run that adapts, `episode` counts evaluation tasks, and episodes of
    a visit are the rows. Other arguments are those of `play`.
    """
    config = read_run(run, typed_env_id).config
    shots = [Shot(shown.episode - 1, one) for one in _skills(config, skills)]
    if config.agent.inference is not None:
        shots = [Shot(episode, shown.episode - 1) for episode in visit_episodes(config)]
    if out.suffix.lower() != ".png":
        raise UsageError(f"out: expected a file ending in .png, got {str(out)[:200]!r}")
    for name, value, least in (("episode", shown.episode, 1), ("frames", shown.frames, 2)):
        if value < least:
            raise UsageError(f"{name}: expected a number from {least} on, got {value}")
    if config.agent.inference is not None and shown.episode > config.tasks.test:
        raise UsageError(
            f"episode: of a run that adapts it counts evaluation tasks, expected a number from 1 "
            f"to {config.tasks.test}, got {shown.episode}"
        )
    os.environ.update(drawing_variables(config.env_id))
    with appearing(out) as draft:
        loaded = load_run(run, typed_env_id, len(shots), **{"stage": LEARNED, **where})
        with contextlib.closing(loaded.envs) as envs:
            if loaded.adaptation is None:  # without skills that are not learned yet
                learned = _skills(loaded.config, skills)
                shots = [Shot(shown.episode - 1, one) for one in learned]

            def evenly(lengths: Steps) -> Steps:
                spaced = [_spaced(steps, shown.frames) for steps in lengths.tolist()]
                return np.unique(np.concatenate(spaced))

            aim = skills if isinstance(skills, Aim) else None
            rows = moments(film(loaded, shots, evenly, aim), shown.frames)
        tiles = []
        for row, shot in zip(rows, shots, strict=True):
            named = _named(loaded, shot)
            for view in row:
                text = f"{named}step {view.step}{view.note}"
                tiles.append(tile(view, _STRIP_TILE, text, envs.spec.max_episode_steps))
        grid(tiles, len(rows[0])).save(draft)


def moments(states: Iterable[Sequence[View]], frames: int) -> list[list[View]]:
    """Returns evenly spaced views of each episode, equally many of each.

    A shorter episode is shown at all its steps, and its last view fills the row.
    """
    rows: list[list[View]] = []
    for views in states:
        rows = rows or [[] for _ in views]
        for row, view in zip(rows, views, strict=True):
            wanted = _spaced(view.last, frames)
            if len(row) < len(wanted) and view.step == wanted[len(row)]:
                row.append(view)
    most = max(map(len, rows))
    return [[*row, *row[-1:] * (most - len(row))] for row in rows]


def _spaced(steps: int, count: int) -> Steps:
    """Returns `count` steps of an episode, evenly spaced from first to last, each once."""
    return np.unique(np.linspace(0, steps, count).round().astype(np.int64))


def drawing_variables(env_id: str) -> dict[str, str]:
    """Returns the environment variables with which this machine can render an environment.

    MuJoCo reads them at its import, so they must be set before.
    """
    name = without_module(env_id)
    if name in WITHOUT_OPENGL or is_local(env_id):
        return {}
    has_screen = any(os.environ.get(screen) for screen in ("DISPLAY", "WAYLAND_DISPLAY"))
    backend = working_backend() or ("glfw" if has_screen else None)
    if backend is None and is_one_of(name, ROBOTICS):
        packages = [f"  apt-get install {names}   ({gl})" for gl, names in DEBIAN_PACKAGES.items()]
        raise EnvironmentFault(
            f"{name}: nothing can be drawn here: there is no screen, and neither EGL nor OSMesa "
            "loads\ncure, as root on Debian or Ubuntu, one of:\n"
            + "\n".join(packages)
            + "\ntraining and evaluate need no drawing; to check: music-tf doctor"
        )
    return {} if backend is None else {"MUJOCO_GL": backend}


def pages(episodes: int, skills: Sequence[int | None]) -> list[Page]:
    """Divides episodes among sheets: a column per skill; about a square for one skill or many."""
    if len(skills) == 1:
        columns = min(_MOST_ROWS, math.ceil(math.sqrt(episodes)))
        shots = [Shot(episode, skills[0]) for episode in range(episodes)]
        return [(page, columns) for page in _batches(shots, _MOST_ROWS**2)]
    if len(skills) > _MOST_SKILLS:
        columns = math.ceil(math.sqrt(min(len(skills), _MOST_TILES)))
        return [
            ([Shot(episode, skill) for skill in shown], columns)
            for episode in range(episodes)
            for shown in _batches(skills, _MOST_TILES)
        ]
    return [
        ([Shot(episode, skill) for episode in some for skill in skills], len(skills))
        for some in _batches(range(episodes), _MOST_ROWS)
    ]


def sheets_of(config: Config, episodes: int, skills: Sequence[int | None]) -> list[Page]:
    """Returns the sheets of a film: episodes, or visits to that many evaluation tasks.

    A visit is a row with its first and last episode and some between them.
    """
    if config.agent.inference is None:
        return pages(episodes, skills)
    shown = visit_episodes(config)
    tasks = range(min(episodes, config.tasks.test))
    return [
        ([Shot(episode, task) for task in some for episode in shown], len(shown))
        for some in _batches(tasks, _MOST_ROWS)
    ]


def visit_episodes(config: Config) -> list[int]:
    """Returns the episodes of a visit that are shown, with the first and the last."""
    count = config.tasks.evaluation_episodes
    few = np.linspace(0, count - 1, min(count, _MOST_OF_A_VISIT)).round()
    return [int(episode) for episode in few]


def frames_of(
    loaded: LoadedRun, sheets: Sequence[Page], suffix: str, pace: Pace, aim: Aim | None = None
) -> Iterator[Frame]:
    """Yields the frames of a film, sheet after sheet; the last frame of each is held.

    All frames have the size of the largest sheet, which is limited by the suffix of the file. Every
    shot of a sheet needs its own environment.
    """
    steps = loaded.envs.spec.max_episode_steps
    hidden = loaded.config.goals == "zero" and loaded.envs.spec.goal_dim > 0
    across = max(columns for _, columns in sheets)
    down = max(math.ceil(len(shots) / columns) for shots, columns in sheets)
    room = _LARGEST_SHEET[suffix]
    width = min(_LARGEST_TILE[suffix], room[0] // across, room[1] // down) // 2 * 2

    def thinned(lengths: Steps) -> Steps:
        return pace.shown(int(lengths.max()))

    at_the_end = 1 + round(_LAST_STATE_SECONDS * pace.frames_per_second)
    for shots, columns in sheets:
        for views in film(loaded, shots, thinned, aim):
            tiles = []
            for shot, view in zip(shots, views, strict=True):
                named = _named(loaded, shot)
                text = f"{named}episode {shot.episode + 1}   step {view.step}/{steps}{view.note}"
                good = view.success and (not hidden if aim is None else not aim.path)
                tiles.append(tile(view, width, text, steps, _GOOD if good else INK))
            sheet = grid(tiles, columns, (across, down))
            title = line(loaded.title, sheet.width, _TITLE)
            over = all(view.step == view.last for view in views)
            between = Image.new("RGB", (sheet.width, GAP), BETWEEN)
            yield Frame(stacked([title, between, sheet]), at_the_end if over else 1)


def film(
    loaded: LoadedRun,
    shots: Sequence[Shot],
    choose: Callable[[Steps], Steps],
    aim: Aim | None = None,
) -> Iterator[list[View]]:
    """Plays episodes side by side, under the goals of training, and yields some of their states.

    Episodes are first played without rendering, since an environment may break, and since curves
    show the rewards of the whole episode. They are then repeated with the same seeds and actions.
    An episode that is over keeps its last picture until all are over.

    Args:
        loaded: The run, with an environment for each shot.
        shots: The episodes.
        choose: Returns the steps to show, in order, from the lengths of the episodes.
        aim: A goal for a run without goals; environments that have goals draw it.
    """
    config, envs = loaded.config, loaded.envs
    policy: rollout.Policy = loaded.policy
    if aim is not None:
        conditions, policy, notes = _aimed(loaded, shots, aim)
    else:
        conditions, notes = _conditions(loaded, shots)
    loaded.evaluation.set_world(conditions.skills)
    played = rollout.play(envs, policy, conditions, None)
    # with an aim, conditions change from step to step and are not stored, but rewards need them
    paid = rewards_along(loaded, played) if aim is None else []
    traces = [
        [trace._replace(values=trace.values[episode, :steps]) for trace in paid]
        for episode, steps in enumerate(played.length)
    ]
    active = list(range(len(shots)))
    images = [np.empty([0, 0, 3], np.uint8) for _ in shots]
    drawn = np.full(len(shots), -1)  # the step that each image shows
    wanted = set(choose(played.length).tolist())
    goals, tasks = conditions.goals, conditions.tasks
    shown = envs.reset(active, played.seed.tolist(), goals, tasks).observation
    for step in range(int(played.length.max()) + 1):
        if step:
            active = [index for index in active if played.length[index] >= step]
            shown = envs.step(played.action[active, step - 1], active).observation
        if not np.allclose(shown, played.observation[active, step], atol=1e-4):
            raise EnvironmentFault(
                f"{config.env_id}: the same seed and actions do not lead to the same states at "
                f"step {step}, so it cannot be filmed; see music-tf check-env"
            )
        if step not in wanted:
            continue
        now = np.minimum(step, played.length)
        for index in np.flatnonzero(now > drawn):
            path, way = conditions.moving, played.achieved_goal[index, : step + 1]
            drawing = [] if path is None else [path[step], path, way]
            images[index] = envs.render(int(index), *drawing)
        drawn = now
        sizes = {image.shape for image in images}
        if len(sizes) > 1:
            raise EnvironmentFault(f"{config.env_id}: pictures differ in size: {sorted(sizes)}")
        succeeds = played.success & (now == played.length)
        ends = played.length.tolist()
        yield list(map(View, images, now.tolist(), succeeds.tolist(), traces, ends, notes))


def _conditions(loaded: LoadedRun, shots: Sequence[Shot]) -> tuple[Conditions, list[str]]:
    """Returns the conditions of evaluation episodes, or of visits to tasks, with a note for each.

    For a visit the note is the uncertainty of its belief.
    """
    config, adaptation = loaded.config, loaded.adaptation
    if adaptation is None:
        episodes = [shot.episode for shot in shots]
        conditions = evaluation_conditions(episodes, config, loaded.envs.spec.goal_dim)
        if config.acting_skills:
            one_hot = np.eye(config.condition_size, dtype=np.float32)
            skills = [shot.skill or 0 for shot in shots]
            conditions = conditions._replace(skills=one_hot[skills])
        return conditions, [""] * len(shots)
    tasks = list(dict.fromkeys(shot.skill or 0 for shot in shots))
    starts, unsure = adaptation.starts(loaded.agent, tasks)
    rows = [tasks.index(shot.skill or 0) * adaptation.episodes + shot.episode for shot in shots]
    places = starts.tasks
    conditions = Conditions(
        starts.seeds[rows], None, starts.skills[rows], None if places is None else places[rows]
    )
    return conditions, [f"   belief ±{unsure[row]:.2f}" for row in rows]


def _guide_of(loaded: LoadedRun, aim: Aim) -> GoalGuide:
    """Returns what leads a run to an aim."""
    leads = guide_to_goals(loaded, aim.option)
    if aim.place and len(aim.place) != len(leads.columns):
        raise UsageError(
            f"--reach: {loaded.path}: expected {len(leads.columns)} numbers, for columns "
            f"{list(leads.columns)} of the observation, got {len(aim.place)}"
        )
    if aim.path:
        points_of(aim.path, leads)
    return leads


def _aimed(
    loaded: LoadedRun, shots: Sequence[Shot], aim: Aim
) -> tuple[Conditions, ReachingPolicy, list[str]]:
    """Returns the conditions of episodes with an aim, the policy, and a note for each episode."""
    envs, snapshot, run = loaded.envs, loaded.saved.snapshot, f"{aim.option}: {loaded.path}"
    leads, size = _guide_of(loaded, aim), envs.spec.goal_dim
    config = dataclasses.replace(loaded.config, goals="environment")
    conditions = evaluation_conditions([shot.episode for shot in shots], config, size)
    place = np.array(aim.place, np.float32)
    if aim.place and not size:
        nothing = np.zeros(len(place), np.int64)
        places = Places(np.array(leads.columns), nothing > 0, nothing)
        policy = ReachingPolicy(snapshot, leads, places, place=place)
    else:
        policy = reaching(loaded.evaluation, snapshot, leads, run)[1]
        if aim.path:
            moving = moving_goals(loaded.evaluation, policy, aim.path)
            return conditions.along(moving), policy, ["   at v/2"] * len(shots)
        policy = dataclasses.replace(policy, stop=brake_distance(loaded))
        if aim.place:
            policy = dataclasses.replace(policy, place=place)
            loaded.evaluation.set_world(conditions.skills)
            first = envs.reset(range(len(shots)), conditions.seeds.tolist(), None)
            goals = policy.places.goal_at(place, first.achieved_goal)
            conditions = conditions._replace(goals=goals)
    note = "   to " + " ".join(f"{number:.2f}" for number in aim.place) if aim.place else ""
    return conditions, policy, [note] * len(shots)


def rewards_along(loaded: LoadedRun, played: Episodes) -> list[Trace]:
    """Returns each learned reward along episodes, which a subprocess computes."""
    if not loaded.learned:
        return []
    prepare_tensorflow()
    with tempfile.TemporaryDirectory(prefix="music_tf-") as folder:
        job, found = Path(folder) / "job.npz", Path(folder) / "found.npz"
        np.savez(job, allow_pickle=False, **(played.named() | loaded.learned))
        words = [str(loaded.here / loaded.path), str(job), str(found), loaded.config.env_id]
        if is_local(loaded.config.env_id):  # no subprocess knows it
            done = Probe(importlib.import_module("music_tf.runs.learned_rewards").main(words), "")
        else:
            done = run_command(
                [sys.executable, "-P", "-m", "music_tf.runs.learned_rewards", *words],
                seconds=600.0,
                environment={
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "MUJOCO_GL": "",
                    "CUDA_VISIBLE_DEVICES": NO_GPU,
                },
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


def tile(view: View, width: int, text: str, steps: int, colour: str = INK) -> Image.Image:
    """Returns the picture of a view, curves of rewards over `steps`, and a line of text."""
    picture = Image.fromarray(view.image)
    height = max(1, round(width * picture.height / picture.width))
    grows = width > picture.width
    filter_ = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
    parts = [picture.resize((width, height), filter_)]
    for trace, of_reward in zip(view.traces, itertools.cycle(_COLOURS), strict=False):
        name = f"{trace.name.replace('_', ' ')} reward"
        paid = trace.values[: view.step]
        said = f"{name} {paid[-1]:z.2f}" if len(paid) else name
        parts.append(line(said, width, _NOTE, of_reward, left=_SIDE))
        parts.append(curve(trace, of_reward, view.step, steps, width))
    return stacked([*parts, line(text, width, _CAPTION, colour)])


def curve(trace: Trace, colour: str, step: int, steps: int, width: int) -> Image.Image:
    """Draws a reward over the steps of an episode, pale after `step`.

    The curve of an unbounded reward fills the height.
    """
    low = trace.lowest if math.isfinite(trace.lowest) else float(trace.values.min())
    high = trace.highest if math.isfinite(trace.highest) else float(trace.values.max())
    shares = np.clip((trace.values - low) / max(high - low, 1e-30), 0.0, 1.0)
    size = width, max(16, width // 9)
    image = Image.new("RGB", (_FINER * size[0], _FINER * size[1]), PAPER)
    left, right = _FINER * _SIDE, image.width - _FINER * _SIDE
    top, bottom = _FINER * _ABOVE, image.height - _FINER * _BELOW
    edges = left + (right - left) * np.arange(steps + 1) / steps
    draw = ImageDraw.Draw(image)
    strong = ImageColor.getrgb(colour)
    pale = tuple(round(_PALE * part + (1 - _PALE) * 255) for part in strong)
    for at, level in enumerate(bottom - (bottom - top) * shares.astype(np.float32)):
        box = (edges[at], level, edges[at + 1], bottom)
        draw.rectangle(box, fill=strong if at < step else pale)
    draw.line((left, bottom, right, bottom), fill=_AXIS, width=_FINER)
    now = edges[min(step, len(shares))]
    draw.line((now, top - _FINER, now, bottom + _FINER), fill=_CURSOR, width=_FINER)
    return image.resize(size, Image.Resampling.LANCZOS)


def write_film(path: Path, frames: Iterable[Frame], frames_per_second: float) -> int:
    """Writes an .mp4 (H.264) or a .gif and returns its number of frames, at least one.

    Pictures have one size, with even width and height. A gif has one palette for all of them, which
    keeps the file small and avoids flicker; small objects such as a goal keep their colour. It has
    a single, longer frame while nothing changes.
    """
    if path.suffix == ".mp4":
        count = 0
        options: dict[str, Any] = {"codec": "libx264", "pixelformat": "yuv420p", "quality": 7}
        options |= {"fps": frames_per_second, "macro_block_size": 2, "ffmpeg_log_level": "error"}
        with contextlib.closing(imageio.get_writer(path, "FFMPEG", **options)) as writer:
            for frame in frames:
                for _ in range(frame.times):
                    writer.append_data(np.asarray(frame.image))
                count += frame.times
        return count
    following = iter(frames)
    beginning = list(itertools.islice(following, _PALETTE_FRAMES))
    samples = [frame.image for frame in (*beginning[:: _PALETTE_FRAMES // 8], beginning[-1])]
    palette = grid(samples, len(samples)).quantize(64, method=Image.Quantize.FASTOCTREE)
    images, milliseconds = [], []
    for frame in itertools.chain(beginning, following):
        images.append(frame.image.quantize(palette=palette, dither=Image.Dither.NONE))
        milliseconds.append(10 * round(100 / frames_per_second) * frame.times)
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=milliseconds,
        loop=0,
        optimize=True,
    )
    with Image.open(path) as written:
        return int(getattr(written, "n_frames", 1))


def _named(loaded: LoadedRun, shot: Shot) -> str:
    """Returns the skill or the task of an episode as text; empty if there is only one."""
    config = loaded.config
    if shot.skill is None:
        return ""
    if config.agent.inference is not None:
        return f"task {shot.skill + 1}   "  # as --episode counts them
    if not config.acting_skills or config.condition_size < 2:  # noqa: PLR2004
        return ""
    world, skill = loaded.evaluation.world, shot.skill
    stage = world if isinstance(world, int) else world[skill]
    return f"skill {skill} in stage {stage}   " if config.env.stages else f"skill {skill}   "


def _skills(config: Config, skills: Sequence[int] | Aim) -> Sequence[int | None]:
    """Returns the skills that were asked for, or all that act; refuses an unknown one."""
    if isinstance(skills, Aim):  # which chooses the skill
        return [None]
    if not skills:
        return config.acting_skills or [None]
    if not config.acting_skills:
        raise UsageError(
            f"--skill: expected none, since this run has {config.condition.kind} conditions in "
            f"place of skills; got {skills[0]}\n"
            "episodes take those of evaluation; leave --skill out"
        )
    count = config.condition_size
    if missing := [skill for skill in skills if not 0 <= skill < count]:
        several = f"0..{count - 1}, or all"
        known = several if count > 1 else "0: this run has one skill"
        raise UsageError(f"--skill: expected {known}; got {missing[0]}")
    return skills


def _batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
