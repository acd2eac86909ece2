"""How a run adapts to tasks: curves for a page, and a picture of the paths of its visits."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_tf.config.world import ALL
from music_tf.envs.registry import told_apart_by
from music_tf.hints import read
from music_tf.runs.loaded_run import LoadedRun
from music_tf.tools.curves import svg_of
from music_tf.tools.drawing import COLOURS, appearing
from music_tf.types import Array

if TYPE_CHECKING:  # a second to load
    from matplotlib.figure import Figure

PICTURE = "adaptation.png"
"""File name in `videos/` of a run, or beside the other files of an agent of the package."""
PARTS = {"test": COLOURS[0], "train": COLOURS[1]}
"""Kinds of tasks with the colours of their curves."""
_MOST_TASKS, _MOST_EPISODES = 5, 7


class Curves(NamedTuple):
    """What `evaluation.json` says of one kind of tasks."""

    by_task: Sequence[Sequence[float]]  # [N, E]
    mean: Sequence[float]  # [E]
    random: Sequence[float]  # [E]; empty where it is not known


def curves_of(adaptation: Any, name: str) -> dict[str, Curves]:
    """Returns `returns` or `success` by kind of task, from a file that may say anything."""
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
    """Returns curves over context episodes as SVG: tasks thin, means thick, random ones dotted."""

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
    figure = paths_of_visits(paths[:, shown], goals, returns[:, shown], shown.tolist())
    name = loaded.file(PICTURE)
    path = name.parent / "videos" / name.name if name.parent == loaded.path else name
    with appearing(loaded.here / path) as draft:
        figure.savefig(draft, dpi=100, format="png")
    return [f"written: {path}"]


def paths_of_visits(
    paths: Array, goals: npt.NDArray[np.float64], returns: Array, seen: Sequence[int]
) -> "Figure":
    """Draws a row a task and a column an episode: `paths` [N, E, T + 1, 2], `returns` [N, E]."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load

    rows, columns = returns.shape
    figure = Figure(figsize=(1.3 * columns, 1.5 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for (task, episode), panel in np.ndenumerate(panels):
        (x, y), count = paths[task, episode].T, seen[episode]
        panel.plot(x, y, color=COLOURS[0], linewidth=1.2)
        for at, inside in ((0, "white"), (-1, COLOURS[0])):
            ends = {"markersize": 5, "markerfacecolor": inside, "markeredgecolor": "#333333"}
            panel.plot(x[at], y[at], "o", **ends)
        panel.plot(*goals[task], "x", color=COLOURS[2], markersize=8, markeredgewidth=2.5)
        title = f"{f'after {count}' if count else 'prior'}: {returns[task, episode]:.1f}"
        panel.set_title(title, fontsize="small")
        panel.set(xticks=[], yticks=[], aspect="equal")
    note = "above: episodes of the visit seen before, return; cross: the task; open circle: start"
    figure.supxlabel(note, fontsize="small")
    return figure
