"""How a run adapts to tasks: curves for a page, and a picture of the paths of its visits."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from music_tf.config.world import ALL
from music_tf.envs.registry import told_apart_by
from music_tf.hints import read
from music_tf.runs.loaded_run import LoadedRun
from music_tf.tools.curves import svg_of
from music_tf.tools.drawing import COLOURS, FINE, PAPER, appearing, dot, grid, line, stacked
from music_tf.types import Array

PICTURE = "adaptation.png"
"""File name in `videos/` of a run, or beside the other files of an agent of the package."""
PARTS = {"test": COLOURS[0], "train": COLOURS[1]}
"""Kinds of tasks with the colours of their curves."""
_MOST_TASKS, _MOST_EPISODES = 5, 7
_PANEL, _ARM, _RADIUS = 128 * FINE, 6 * FINE, 3.5 * FINE
"""Pixels across a panel, of half a cross, and of a circle."""
_LETTERS = 12 * FINE
_GOAL = "#2ca02c"


class Curves(NamedTuple):
    """What `evaluation.json` says of one kind of tasks."""

    by_task: Sequence[Sequence[float]]  # [N, E]
    mean: Sequence[float]  # [E]
    random: Sequence[float]  # [E]; empty where it is not known


def curves_of(adaptation: Any, name: str) -> dict[str, Curves]:
    """Returns what a file that may say anything tells of `returns` or `success`, by kind of task.

    A kind whose numbers do not fit together is left out.
    """
    curves = {}
    for part in PARTS:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            kind = adaptation[part]
            mean = read(kind[name], list[float])
            by_task = [read(task[name], list[float]) for task in kind["tasks"]]
            random = read(kind.get("random", []) if name == "returns" else [], list[float])
            if by_task and {*map(len, by_task), len(random) or len(mean)} == {len(mean)} != {0}:
                curves[part] = Curves(by_task, mean, random)
    return curves


def adaptation_svg(curves: Mapping[str, Curves], explored: int, salt: str) -> str:
    """Returns curves over context episodes as SVG: each test task thin, means thick.

    Random actions are dotted. A line stands where the belief is first inferred.
    """

    def draw(panel: Any) -> None:
        for part, (by_task, mean, random) in curves.items():
            colour = PARTS[part]
            for curve in by_task if part == "test" else ():
                panel.plot(curve, color=colour, alpha=0.3, linewidth=0.8)
            panel.plot(mean, color=colour, linewidth=2.5, marker="o", markersize=3.5, label=part)
            if random and part == "test":
                panel.plot(random, color="#7f7f7f", linestyle=":", label="random")
        panel.axvline(explored - 0.5, color="#7f7f7f", linewidth=0.6, linestyle="--")
        panel.set_xlabel("episodes of the task seen before")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
        above = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.97)}
        panel.legend(frameon=False, fontsize=7, ncols=3, **above)

    return svg_of(draw, salt)


def draw_visits(loaded: LoadedRun) -> list[str]:
    """Draws paths of visits where a run moves in a plane; returns lines that say where to."""
    adaptation, info = loaded.adaptation, loaded.envs.info
    if adaptation is None or info.descriptor in ((), ALL):
        return []
    columns, _ = told_apart_by(info, loaded.envs.spec.observation_dim)
    goals = adaptation.tasks.test[:_MOST_TASKS]
    if len(columns) != 2 or goals.shape[1] != 2:  # noqa: PLR2004 - a plane
        return []
    count = adaptation.episodes
    shown = np.unique(np.linspace(0, count - 1, min(count, _MOST_EPISODES)).round().astype(int))
    visits = adaptation.first_visits(loaded.agent, len(goals))
    paths = visits.observation[..., list(columns)].reshape(len(goals), count, -1, 2)
    returns = visits.reward.sum(axis=1).reshape(len(goals), count)
    picture = paths_of_visits(paths[:, shown], goals, returns[:, shown], shown.tolist())
    name = loaded.file(PICTURE)
    path = name.parent / "videos" / name.name if name.parent == loaded.path else name
    with appearing(loaded.here / path) as draft:
        Image.fromarray(picture).save(draft, "PNG")
    return [f"written: {path}"]


def paths_of_visits(
    paths: Array, goals: npt.NDArray[np.float64], returns: Array, seen: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """Returns a picture with a row a task and a column an episode of the visit to it.

    A path begins at an open circle and ends at a filled one; the goal is a green cross. Of N visits
    `paths` are [N, E, T + 1, 2], x to the right and y up, `goals` [N, 2] and `returns` [N, E];
    `seen` says how many episodes came before each of the E ones.
    """
    every = np.concatenate([paths.reshape(-1, 2), goals])
    middle = (every.min(axis=0) + every.max(axis=0)) / 2.0
    reach = 1.08 * max(float(np.ptp(every, axis=0).max()) / 2.0, 1e-6)

    def pixels(points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        placed = (np.asarray(points, np.float64) - middle) / reach
        return np.asarray((placed * (1.0, -1.0) + 1.0) / 2.0 * _PANEL)

    tiles = []
    for visit, goal, paid in zip(paths, goals, returns, strict=True):
        for path, value, count in zip(visit, paid, seen, strict=True):
            panel = Image.new("RGB", (_PANEL, _PANEL), PAPER)
            draw = ImageDraw.Draw(panel)
            x, y = pixels(goal).tolist()
            for arm in (_ARM, -_ARM):
                draw.line((x - _ARM, y - arm, x + _ARM, y + arm), _GOAL, 3 * FINE)
            points = pixels(path)
            draw.line(points.ravel().tolist(), COLOURS[0], 2 * FINE, "curve")
            dot(draw, points[0], _RADIUS, PAPER)
            dot(draw, points[-1], _RADIUS, COLOURS[0])
            title = f"{f'after {count}' if count else 'prior'}: {value:.1f}"
            tiles.append(stacked([line(title, _PANEL, _LETTERS), panel]))
    sheet = grid(tiles, len(seen))
    note = (
        "above: episodes of the visit seen before, and the return; cross: the task; circle: start"
    )
    return np.asarray(stacked([sheet, line(note, sheet.width, _LETTERS)]).reduce(FINE))
