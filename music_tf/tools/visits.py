"""How a run adapts to tasks: curves for a page, and a picture of the paths of its visits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from music_tf.config.world import ALL
from music_tf.envs.registry import told_apart_by
from music_tf.hints import fits, read
from music_tf.runs.loaded_run import LoadedRun
from music_tf.tools.curves import svg_of
from music_tf.tools.drawing import PAPER, appearing, font, grid, line, stacked
from music_tf.tools.paths import COLOURS
from music_tf.types import Array

PICTURE = "adaptation.png"
"""File name in `videos/` of a run, or beside the other files of an agent of the package."""
PARTS = {"test": COLOURS[0], "train": COLOURS[1]}
"""Kinds of tasks with the colours of their curves."""
_MOST_TASKS, _MOST_EPISODES = 5, 7
_PANEL, _SIDE, _TITLE, _FINE = 128, 76, 16, 2
"""Pixels across a panel, and beside a row; size of letters; drawn so much larger and reduced."""
_GOAL, _PATH, _START, _RIM = "#2ca02c", COLOURS[0], "#ffffff", "#333333"


class Curves(NamedTuple):
    """What `evaluation.json` says of one kind of tasks."""

    by_task: Sequence[Sequence[float]]  # [N, E]
    mean: Sequence[float]  # [E]
    random: Sequence[float]  # [E]; empty where it is not known


def curves_of(adaptation: Any, name: str) -> dict[str, Curves]:
    """Returns what a file that may say anything tells of `returns` or `success`, by kind of task.

    A kind whose numbers do not fit together is left out.
    """
    found = {}
    for part in PARTS:
        told = adaptation.get(part) if isinstance(adaptation, dict) else None
        rows = told.get("tasks") if isinstance(told, dict) else None
        if not isinstance(told, dict) or not isinstance(rows, list):
            continue
        mean = _numbers(told.get(name))
        by_task = [_numbers(row.get(name) if isinstance(row, dict) else None) for row in rows]
        random = _numbers(told.get("random") if name == "returns" else None)
        if mean and by_task and all(len(one) == len(mean) for one in by_task):
            found[part] = Curves(by_task, mean, random if len(random) == len(mean) else [])
    return found


def adaptation_svg(curves: Mapping[str, Curves], explored: int, salt: str) -> str:
    """Returns curves over context episodes as SVG: each test task thin, means thick.

    Random actions are dotted. A line stands where the belief is first inferred.
    """

    def draw(panel: Any) -> None:
        for part, (by_task, mean, random) in curves.items():
            colour = PARTS[part]
            for one in by_task if part == "test" else ():
                panel.plot(one, color=colour, alpha=0.3, linewidth=0.8)
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
    size = _PANEL * _FINE

    def pixels(points: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        placed = (np.asarray(points, np.float64) - middle) / reach
        return np.asarray((placed * (1.0, -1.0) + 1.0) / 2.0 * size)

    rows = []
    for visit, goal, paid in zip(paths, goals, returns, strict=True):
        tiles = []
        for path, value in zip(visit, paid, strict=True):
            panel = Image.new("RGB", (size, size), PAPER)
            draw = ImageDraw.Draw(panel)
            x, y = pixels(goal).tolist()
            arm = 6 * _FINE
            for ends in (
                (x - arm, y - arm, x + arm, y + arm),
                (x - arm, y + arm, x + arm, y - arm),
            ):
                draw.line(ends, _GOAL, 3 * _FINE)
            points = pixels(path)
            draw.line(points.ravel().tolist(), _PATH, 2 * _FINE, "curve")
            for (x, y), inside in ((points[0], _START), (points[-1], _PATH)):
                radius = 3.5 * _FINE
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), inside, _RIM, _FINE)
            text = f"{value:.1f}"
            draw.text((size - 4 * _FINE, 4 * _FINE), text, _RIM, font(11 * _FINE), "ra")
            tiles.append(panel)
        rows.append(tiles)
    titles = ["prior" if not n else "after 1 episode" if n == 1 else f"after {n}" for n in seen]
    heads = [line(title, size, _TITLE * _FINE // 2 + 6) for title in titles]
    sheet = grid([tile for tiles in rows for tile in tiles], len(seen))
    top = Image.new("RGB", (sheet.width, heads[0].height), PAPER)
    for column, head in enumerate(heads):
        top.paste(head, (column * (size + 4), 0))
    note = "episodes of the visit seen before; upper right: return; cross: the task; circle: start"
    bottom = line(note, sheet.width, 12 * _FINE)
    whole = stacked([top, sheet, bottom])
    return np.asarray(whole.reduce(_FINE))


def _numbers(values: Any) -> list[float]:
    """Returns finite numbers of a list that was read from JSON; nothing of anything else."""
    return read(values, list[float]) if fits(values, list[float]) else []
