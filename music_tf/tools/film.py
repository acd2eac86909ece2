"""Films the policy of a run as mp4 or gif, or draws a strip: a png with states of episodes.

Without a graphics card Mesa renders. Mesa and TensorFlow each contain LLVM, and a process that has
loaded both crashes. So this module acts with numpy and never loads TensorFlow: a subprocess
computes the learned rewards.
"""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import math
import os
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import imageio.v2 as imageio
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor, ImageDraw

from music_tf import rollout
from music_tf.config.changes import LEARNED
from music_tf.config.names import ROBOTICS, WITHOUT_OPENGL, is_local, is_one_of, without_module
from music_tf.config.settings import Config
from music_tf.config.terms import TaskConfig
from music_tf.envs.viewer import WindowClosedError
from music_tf.errors import EXIT_USAGE, EnvironmentFault, UsageError
from music_tf.measures.behaviour import support_lost_at
from music_tf.process.children import Probe, run_command
from music_tf.process.tensorflow_start import NO_GPU, prepare_tensorflow
from music_tf.reading.stored import read_run
from music_tf.rollout import Conditions
from music_tf.runs import zero_shot
from music_tf.runs.comparison import Trace
from music_tf.runs.evaluation_file import brake_distance
from music_tf.runs.loaded_run import LoadedRun, load_run
from music_tf.runs.progress import Progress
from music_tf.storage.run_paths import agents, comes_with_package
from music_tf.tools.doctor import DEBIAN_PACKAGES, working_backend
from music_tf.tools.drawing import BETWEEN, GAP, INK, PAPER, appearing, grid, line, stacked
from music_tf.tools.film_pace import Pace, Steps, pace_of, reported
from music_tf.training.evaluation import evaluation_conditions, random_actions
from music_tf.types import Episodes

_GOOD, _AXIS, _CURSOR, _ORIGIN = "#007828", "#969696", "#282828", "#696969"
_TITLE, _CAPTION, _NOTE = 18, 15, 12
_MOST_SKILLS, _MOST_ROWS, _MOST_TILES = 10, 4, 40
"""Most columns and rows of a sheet, and most tiles of a sheet with more skills than columns. The
rest follows on further sheets."""
_MOST_EPISODES_OF_A_VISIT = 7
_LARGEST_TILE = {".mp4": 480, ".gif": 320, ".png": 240}
_LARGEST_SHEET = {".mp4": (1600, 960), ".gif": (960, 640)}
_FRAMES_FOR_PALETTE = 64
_LAST_STATE_SECONDS = 1.2
_REWARD_COLOURS = ("#0068ab", "#c75c00", "#5a3c96", "#007350", "#aa234b", "#5f503c")
_PALE = 0.22
"""Opacity of the curve of a reward in the rest of the episode."""
_FINER = 3  # curves are drawn larger and then reduced, for smooth edges
_SIDE, _ABOVE, _BELOW = 6, 4, 3


class Shot(NamedTuple):
    """An episode to film."""

    episode: int
    """Index in the evaluation protocol, from 0."""
    skill: int | None
    """None for continuous conditions, which are those of evaluation. For a run that adapts, the
    number of an evaluation task; `episode` then counts episodes of a visit to it."""
    random: bool = False
    """Whether random actions replace those of the policy."""


class Sheet(NamedTuple):
    """Episodes that are shown together."""

    shots: Sequence[Shot]
    columns: int


class View(NamedTuple):
    """One episode at one time."""

    image: npt.NDArray[np.uint8]  # [height, width, 3]
    step: int
    caption: str = ""
    good: bool = False
    """Whether it is over and has succeeded."""
    traces: Sequence[Trace] = ()
    """Each learned reward along the whole episode: values [length]."""


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
        return "--path" if self.path else "--reach" if self.place else "--zero-shot"

    @property
    def note(self) -> str:
        to = " ".join(f"{number:.2f}" for number in self.place)
        return "   goal at half speed" if self.path else f"   to {to}" if to else ""


def play(
    run: Path,
    out: Path,
    episodes: range,
    skills: Sequence[int] | Aim = (),
    frames: int = 6,  # states in a row of a strip
    typed_env_id: str | None = None,
    **where: str,  # `beside` if random actions are shown; `stage`, `env_overrides` of `load_run`
) -> None:
    """Films the policy in evaluation episodes, or draws a strip (.png) with a row for each."""
    # `skills` is empty for all; of a run that adapts, `episodes` are tasks
    config = read_run(run, typed_env_id).config
    chosen = _skills(config, skills)  # refuses before loading
    aim = skills if isinstance(skills, Aim) else None
    is_strip = out.suffix.lower() == ".png"
    fewest = 1 if config.incremental.on else len(chosen)  # the rest may not be learned yet
    lay = functools.partial(sheets_of, one_sheet=is_strip, beside=where.pop("beside", ""))
    tried = (lay(config, episodes, chosen[:count]) for count in range(fewest, len(chosen) + 1))
    most = max(len(sheet.shots) for sheets in tried for sheet in sheets)
    progress = Progress()

    def say(text: str) -> None:
        progress.banner([text])

    with appearing(out) as draft:
        os.environ.update(drawing_variables(config.env_id))
        loaded = load_run(run, typed_env_id, most, **{"stage": LEARNED, **where})
        with contextlib.closing(loaded.envs) as envs:
            config = loaded.config  # without skills that are not learned yet
            sheets = lay(config, episodes, _skills(config, skills))
            if aim is not None:
                _guide_of(loaded, aim)  # refuses before anything is announced
            text = str(out)
            if is_strip:
                strip_of(loaded, sheets[0].shots, frames, aim).save(draft)
            else:
                steps, pace = envs.spec.max_episode_steps, pace_of(envs.steps_per_second)
                count = sum(len(sheet.shots) for sheet in sheets)
                step = "every step" if pace.every == 1 else f"one step in {pace.every}"
                say(
                    f"filming {count} episode{'s' * (count > 1)} of up to {steps} steps: {step}, "
                    f"{pace.frames_per_second:.3g} frames a second; episodes are played first"
                )
                most = len(sheets) * (pace.most_pictures(steps) + _held(pace))
                images = frames_of(loaded, sheets, draft.suffix, pace, aim)
                images = reported(images, most, say)
                count = write_film(draft, images, pace.frames_per_second)
                text = f"{count} frames, {draft.stat().st_size / 1000.0:.0f} kB: {out}"
    say(text)


def show(
    run: Path,
    episodes: range,
    skills: Sequence[int] | Aim = (),
    typed_env_id: str | None = None,
    **where: str,  # as of `load_run`
) -> None:
    """Plays the policy in the environment's own window in real time, until that is closed."""
    os.environ["MUJOCO_GL"] = "glfw"
    import glfw  # noqa: PLC0415 - MuJoCo brings it

    with warnings.catch_warnings(action="ignore"):
        if not glfw.init():
            raise EnvironmentFault("--live: there is no screen for a window; films need none")
    loaded = load_run(run, typed_env_id, 1, **{"stage": LEARNED, **where})
    loaded, envs = dataclasses.replace(loaded, learned={}), loaded.envs
    with contextlib.closing(envs), contextlib.suppress(WindowClosedError):
        if "human" not in (envs.environment.metadata.get("render_modes") or ()):
            name = loaded.config.env_id
            raise UsageError(f"--live: {name} opens no window; leave it out for a film")
        envs.open_window()
        aim, pace = skills if isinstance(skills, Aim) else None, pace_of(envs.steps_per_second)
        sheets = sheets_of(loaded.config, episodes, _skills(loaded.config, skills))
        for shot in itertools.chain.from_iterable(sheet.shots for sheet in sheets):
            Progress().banner([_label(loaded, shot).strip()])
            due = time.monotonic()
            for _ in film(loaded, [shot], lambda lengths: pace.shown(int(lengths.max())), aim):
                due += 1.0 / pace.frames_per_second
                time.sleep(max(0.0, due - time.monotonic()))
            time.sleep(_LAST_STATE_SECONDS)


def drawing_variables(env_id: str) -> dict[str, str]:
    """Returns the variables for rendering here, to be set before MuJoCo is imported."""
    name = without_module(env_id)
    if name in WITHOUT_OPENGL or is_local(env_id):
        return {}
    has_screen = any(os.environ.get(screen) for screen in ("DISPLAY", "WAYLAND_DISPLAY"))
    backend = working_backend() or ("glfw" if has_screen else None)
    if backend is None and is_one_of(name, ROBOTICS):
        raise EnvironmentFault(
            f"{name}: nothing can be drawn here: there is no screen, and neither EGL nor OSMesa "
            f"loads\nas root on Debian or Ubuntu: apt-get install {DEBIAN_PACKAGES}\n"
            "training and evaluate need no drawing; to check: music-tf doctor"
        )
    return {} if backend is None else {"MUJOCO_GL": backend}


# --- what is shown ----------------------------------------------------------------------------


def sheets_of(
    config: Config,
    episodes: range,
    skills: Sequence[int | None],
    one_sheet: bool = False,
    beside: str = "",
) -> list[Sheet]:
    """A column per skill, or a row per task to adapt to, and one of random actions."""
    if config.agent.inference is not None:
        tasks = [task for task in episodes if task < config.tasks.test]
        if not tasks:
            raise UsageError(
                f"--episode: of a run that adapts it counts evaluation tasks, expected a number "
                f"from 1 to {config.tasks.test}, got {episodes[0] + 1}"
            )
        rows = [[Shot(episode, task) for episode in visit_episodes(config)] for task in tasks]
    else:
        rows = [[Shot(episode, skill) for skill in skills] for episode in episodes]
    if beside:
        rows = [[*row, row[0]._replace(random=True)] for row in rows]
        if len(rows[0]) == 2:  # noqa: PLR2004 - of one skill, below the policy
            rows = [list(row) for row in zip(*rows, strict=True)]
    across, shots = len(rows[0]), list(itertools.chain.from_iterable(rows))
    if one_sheet:
        return [Sheet(shots, across)]
    if 1 < across <= _MOST_SKILLS:
        return _batches(shots, across * _MOST_ROWS, across)
    groups, most = ([shots], _MOST_ROWS**2) if across == 1 else (rows, _MOST_TILES)
    columns = math.ceil(math.sqrt(min(len(groups[0]), most)))
    return [sheet for group in groups for sheet in _batches(group, most, columns)]


def _batches(shots: Sequence[Shot], size: int, columns: int) -> list[Sheet]:
    return [Sheet(shots[start : start + size], columns) for start in range(0, len(shots), size)]


def visit_episodes(config: Config) -> list[int]:
    count = config.tasks.evaluation_episodes
    return _spaced(count - 1, min(count, _MOST_EPISODES_OF_A_VISIT))


def _spaced(last: int, count: int) -> list[int]:
    return [round(step) for step in np.linspace(0, last, count).tolist()]


def _skills(config: Config, skills: Sequence[int] | Aim) -> Sequence[int | None]:
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
        expected = f"0..{count - 1}, or all" if count > 1 else "0: this run has one skill"
        raise UsageError(f"--skill: expected {expected}; got {missing[0]}")
    return skills


def _label(loaded: LoadedRun, shot: Shot) -> str:
    config, episode, skill = loaded.config, f"episode {shot.episode + 1}   ", shot.skill
    if shot.random:
        return f"random actions   {episode}"
    if skill is not None and config.agent.inference is not None:
        return f"task {skill + 1}   {episode}"
    if skill is None or not config.acting_skills or config.condition_size == 1:
        return episode
    world = loaded.evaluation.world
    stage = world if isinstance(world, int) else world[skill]
    in_stage = f" in stage {stage}" if config.env.stages else ""
    return f"skill {skill}{in_stage}   {episode}"


# --- pictures ---------------------------------------------------------------------------------


def frames_of(
    loaded: LoadedRun, sheets: Sequence[Sheet], suffix: str, pace: Pace, aim: Aim | None = None
) -> Iterator[Image.Image]:
    """Yields frames as large as the largest sheet; the last one of a sheet is held."""
    steps = loaded.envs.spec.max_episode_steps
    across = max(columns for _, columns in sheets)
    down = max(math.ceil(len(shots) / columns) for shots, columns in sheets)
    room = _LARGEST_SHEET[suffix]
    width = min(_LARGEST_TILE[suffix], room[0] // across, room[1] // down) // 2 * 2
    for shots, columns in sheets:
        for views in film(loaded, shots, lambda lengths: pace.shown(int(lengths.max())), aim):
            sheet = grid([tile(view, width, steps) for view in views], columns, (across, down))
            between = Image.new("RGB", (sheet.width, GAP), BETWEEN)
            image = stacked([*heading(loaded, sheet.width, aim), between, sheet])
            yield image
        yield from [image] * _held(pace)


def heading(loaded: LoadedRun, width: int, aim: Aim | None = None) -> list[Image.Image]:
    """Returns lines that say what one sees, and small ones about its origin."""
    recipe, config = loaded.stored.recipe, loaded.config
    shown = f"{recipe} on {config.env_id} after {loaded.saved.env_steps:,} steps"
    shown += "" if TaskConfig.name in config.rewards else ", without a task"
    shown += ", told where to go" if aim else ""
    if comes_with_package(loaded.path):
        shown = agents()[loaded.path.resolve().name]["does"].rstrip(".")
    return [
        line(row, width, size, colour)
        for text, size, colour in ((shown, _TITLE, INK), (loaded.title, _NOTE, _ORIGIN))
        for row in textwrap.wrap(text, 2 * width // size)  # letters are half as wide as high
    ]


def _held(pace: Pace) -> int:
    return round(_LAST_STATE_SECONDS * pace.frames_per_second)


def strip_of(
    loaded: LoadedRun, shots: Sequence[Shot], frames: int, aim: Aim | None = None
) -> Image.Image:
    """Draws a row for each episode, with evenly spaced states from its first to its last."""
    steps = loaded.envs.spec.max_episode_steps
    count, spaced = min(frames, 1 + steps), list[list[int]]()

    def choose(lengths: Steps) -> Steps:
        spaced.extend(_spaced(last, count) for last in lengths.tolist())
        return np.unique(spaced)

    states = film(loaded, shots, choose, aim)
    by_step = {max(view.step for view in views): views for views in states}
    shown = [by_step[step][row] for row, chosen in enumerate(spaced) for step in chosen]
    return grid([tile(view, _LARGEST_TILE[".png"], steps) for view in shown], count)


def tile(view: View, width: int, steps: int) -> Image.Image:
    """Returns the picture of a view, curves of rewards over `steps`, and its caption."""
    picture = Image.fromarray(view.image)
    height = max(1, round(width * picture.height / picture.width))
    grows = width > picture.width
    filter_ = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
    parts = [picture.resize((width, height), filter_)]
    for trace, of_reward in zip(view.traces, itertools.cycle(_REWARD_COLOURS), strict=False):
        paid = [f" {value:z.2f}" for value in trace.values[: view.step][-1:]]
        label = "".join([f"{trace.name.replace('_', ' ')} reward", *paid])
        parts.append(line(label, width, _NOTE, of_reward, left=_SIDE))
        parts.append(curve(trace, of_reward, view.step, steps, width))
    colour = _GOOD if view.good else INK
    return stacked([*parts, line(view.caption, width, _CAPTION, colour)])


def curve(trace: Trace, colour: str, step: int, steps: int, width: int) -> Image.Image:
    """Draws a reward over an episode, pale after `step`; an unbounded one fills the height."""
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


def write_film(path: Path, images: Iterator[Image.Image], frames_per_second: float) -> int:
    """Writes an .mp4 (H.264) or a .gif and returns its number of frames, at least one."""
    if path.suffix == ".mp4":
        count = 0
        options: dict[str, Any] = {"codec": "libx264", "pixelformat": "yuv420p", "quality": 7}
        options |= {"fps": frames_per_second, "macro_block_size": 2, "ffmpeg_log_level": "error"}
        with contextlib.closing(imageio.get_writer(path, "FFMPEG", **options)) as writer:
            for image in images:
                writer.append_data(np.asarray(image))
                count += 1
        return count
    # one palette keeps a gif small and without flicker, and a small goal its colour
    beginning = list(itertools.islice(images, _FRAMES_FOR_PALETTE))
    samples = [*beginning[:: _FRAMES_FOR_PALETTE // 8], beginning[-1]]
    palette = grid(samples, len(samples)).quantize(64, method=Image.Quantize.FASTOCTREE)
    first, *following = (
        image.quantize(palette=palette, dither=Image.Dither.NONE)
        for image in itertools.chain(beginning, images)
    )
    milliseconds = 10 * round(100 / frames_per_second)
    options = {"save_all": True, "append_images": following, "loop": 0, "optimize": True}
    first.save(path, duration=milliseconds, **options)
    with Image.open(path) as written:
        return int(getattr(written, "n_frames", 1))


# --- episodes ---------------------------------------------------------------------------------


def film(
    loaded: LoadedRun,
    shots: Sequence[Shot],
    choose: Callable[[Steps], Steps],  # returns the steps to show, from the lengths of the episodes
    aim: Aim | None = None,
) -> Iterator[list[View]]:
    """Plays episodes side by side and yields some states; what is over keeps its last picture."""
    config, envs = loaded.config, loaded.envs
    steps, labels = envs.spec.max_episode_steps, [_label(loaded, shot) for shot in shots]
    visible = not aim.path if aim else config.goals != "zero" or not envs.spec.goal_dim  # a goal
    conditions, notes = _conditions(loaded, shots)
    policy: rollout.Policy = loaded.policy
    if aim is not None:
        conditions, policy = _aimed(loaded, shots, aim)
        notes = [aim.note] * len(shots)
    loaded.evaluation.set_world(conditions.skills)
    explore = None
    if any(shot.random for shot in shots):
        labels = [text if "random" in text else f"policy   {text}" for text in labels]
        at_random = random_actions(envs.spec)
        actions = np.stack([at_random(shot.episode) for shot in shots], axis=1)  # [T, E, A]
        replaced = np.tile([shot.random for shot in shots], (len(actions), 1))
        explore = rollout.Perturbation(0.0 * actions, replaced, actions, 0.0 * actions)
    # first without rendering, since an environment may break, and curves show the whole episode
    played = rollout.play(envs, policy, conditions, explore)
    lost = support_lost_at(played.observation, played.length, envs.info)
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
    seen = envs.reset(active, played.seed.tolist(), conditions.goals, conditions.tasks).observation
    for step in range(int(played.length.max()) + 1):
        if step:
            active = [index for index in active if played.length[index] >= step]
            seen = envs.step(played.action[active, step - 1], active).observation
        if not np.allclose(seen, played.observation[active, step], atol=1e-4):
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
        good = played.success & (now == played.length) & visible
        ends = np.where(good, "   goal reached", np.where(now >= lost, "   object lost", ""))
        captions = map("{}step {}/{}{}{}".format, labels, now, itertools.repeat(steps), notes, ends)
        yield list(map(View, images, now.tolist(), captions, good.tolist(), traces))


def _conditions(loaded: LoadedRun, shots: Sequence[Shot]) -> tuple[Conditions, list[str]]:
    config, adaptation = loaded.config, loaded.adaptation
    if adaptation is None:
        episodes = [shot.episode for shot in shots]
        conditions = evaluation_conditions(episodes, config, loaded.envs.spec.goal_dim)
        if config.acting_skills:
            one_hot = np.eye(config.condition_size, dtype=np.float32)
            conditions = conditions._replace(skills=one_hot[[shot.skill or 0 for shot in shots]])
        return conditions, [""] * len(shots)
    tasks = list(dict.fromkeys(shot.skill or 0 for shot in shots))
    starts, unsure = adaptation.starts(loaded.agent, tasks)
    rows = [tasks.index(shot.skill or 0) * adaptation.episodes + shot.episode for shot in shots]
    places = None if starts.tasks is None else starts.tasks[rows]
    conditions = Conditions(starts.seeds[rows], None, starts.skills[rows], places)
    return conditions, [f"   belief ±{unsure[row]:.2f}" for row in rows]


def _guide_of(loaded: LoadedRun, aim: Aim) -> zero_shot.GoalGuide:
    guide = zero_shot.guide_to_goals(loaded, aim.option)
    if aim.place and len(aim.place) != len(guide.columns):
        raise UsageError(
            f"--reach: {loaded.path}: expected {len(guide.columns)} numbers, for columns "
            f"{list(guide.columns)} of the observation, got {len(aim.place)}"
        )
    if aim.path:
        zero_shot.points_of(aim.path, guide)
    return guide


def _aimed(
    loaded: LoadedRun, shots: Sequence[Shot], aim: Aim
) -> tuple[Conditions, zero_shot.ReachingPolicy]:
    envs, snapshot, evaluation = loaded.envs, loaded.saved.snapshot, loaded.evaluation
    guide, size = _guide_of(loaded, aim), envs.spec.goal_dim
    config = dataclasses.replace(loaded.config, goals="environment")
    conditions = evaluation_conditions([shot.episode for shot in shots], config, size)
    place = np.array(aim.place, np.float32)
    if not size:  # so it is a place, which no goal specifies
        numbers = np.zeros(len(place), np.int64)
        places = zero_shot.Places(np.array(guide.columns), numbers > 0, numbers)
        return conditions, zero_shot.ReachingPolicy(snapshot, guide, places, place=place)
    policy = zero_shot.reaching(evaluation, snapshot, guide, f"{aim.option}: {loaded.path}")[1]
    if aim.path:
        return conditions.along(zero_shot.moving_goals(evaluation, policy, aim.path)), policy
    policy = dataclasses.replace(policy, stop=brake_distance(loaded))
    if aim.place:
        policy = dataclasses.replace(policy, place=place)
        evaluation.set_world(conditions.skills)
        first = envs.reset(range(len(shots)), conditions.seeds.tolist(), None)
        conditions = conditions._replace(goals=policy.places.goal_at(place, first.achieved_goal))
    return conditions, policy


def rewards_along(loaded: LoadedRun, played: Episodes) -> list[Trace]:
    """Returns each learned reward along episodes, which a subprocess computes."""
    if not loaded.learned:
        return []
    prepare_tensorflow()
    with tempfile.TemporaryDirectory(prefix="music_tf-") as folder:
        job, traces = Path(folder) / "job.npz", Path(folder) / "traces.npz"
        np.savez(job, allow_pickle=False, **(played.named() | loaded.learned))
        words = [str(loaded.here / loaded.path), str(job), str(traces), loaded.config.env_id]
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
        with np.load(traces, allow_pickle=False) as file:
            arrays = dict(file)
    return [
        Trace(name, values, *map(float, arrays[f"{name}/range"]))
        for name, values in arrays.items()
        if "/" not in name
    ]
