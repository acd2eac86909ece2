"""Pictures of skills: traces, confusion matrix, returns, and log q during training."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from music_tf.errors import MusicError
from music_tf.runs.skills import SkillEpisodes
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import read_result
from music_tf.tools.drawing import appearing
from music_tf.tools.paths import COLOURS, Picture
from music_tf.types import Array, Episodes

if TYPE_CHECKING:  # a second to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Positions on the axis of a curve, and its values."""
_MOST_TRACES, _MOST_TICKS = 20, 12
_PLANE = 2
_RUNNING = "skill/log_likelihood_running"
_ACROSS = {"time/episodes": "episodes", "time/env_steps": "environment steps"}


def draw_skills(run: Path, followed: Sequence[SkillEpisodes], out: Path) -> None:
    """Writes a .png file of several panels, when it is complete.

    They show traces of the first two components of the descriptor (or of one over time), the
    confusion matrix of skills by steps, returns by skill, and log q during training over episodes
    and steps.
    """
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - a second to load

    named = [one.named for one in followed if one.named is not None]
    growth = _growth(run)
    figure, panels = _figure(2 + bool(named) + len(growth))

    panel = next(panels)
    for one in followed:
        colour, size = COLOURS[one.skill % len(COLOURS)], one.descriptors.shape[-1]
        for trace, steps in list(zip(np.swapaxes(one.descriptors, 0, 1), one.length, strict=True))[
            :_MOST_TRACES
        ]:
            kept = trace[:steps]
            across = kept[:, 0] if size >= _PLANE else np.arange(steps)
            up = kept[:, min(1, size - 1)]
            panel.plot(across, up, color=colour, lw=0.8, alpha=0.7)
        if len(followed) <= len(COLOURS):  # each has its own colour, and its number at an end
            panel.annotate(
                str(one.skill),
                (float(across[-1]), float(up[-1])),
                color=colour,
                weight="bold",
                ha="center",
                va="center",
                path_effects=[withStroke(linewidth=3, foreground="white")],
            )
    panel.set_title("what skills are distinguished by" + (": first two" if size > _PLANE else ""))

    if named:
        panel = next(panels)
        panel.imshow(np.stack(named), vmin=0.0, vmax=1.0, cmap="Blues")
        panel.set(title="share of steps", xlabel="skill that is named", ylabel="skill that acts")
        step = 1 + len(named[0]) // _MOST_TICKS
        panel.set_yticks(
            range(0, len(followed), step), [str(one.skill) for one in followed[::step]]
        )
        panel.set_xticks(range(0, len(named[0]), step))

    _draw_returns(next(panels), {one.skill: one.returns for one in followed})
    _draw_growth(panels, growth)
    with appearing(out) as draft:
        figure.savefig(draft, dpi=100, format="png")


def skills_in_training(run: Path, episodes: Episodes) -> Picture | None:
    """Returns a picture of an evaluation: returns by skill, and log q of earlier epochs.

    None without several one-hot skills.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - a second

    numbers = episodes.skill_numbers()
    if numbers is None or episodes.skill.shape[-1] < 2:  # noqa: PLR2004
        return None
    growth: Mapping[str, Line] = {}
    with contextlib.suppress(MusicError):  # an unreadable table does not end the run
        growth = _growth(run)
    figure, panels = _figure(1 + len(growth))
    earned = episodes.reward.sum(axis=1)
    _draw_returns(next(panels), {int(one): earned[numbers == one] for one in np.unique(numbers)})
    _draw_growth(panels, growth)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


def _figure(panels: int) -> "tuple[Figure, Iterator[Axes]]":
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load

    figure = Figure(figsize=(4.2 * panels, 3.8), layout="constrained")
    return figure, iter(figure.subplots(1, panels, squeeze=False)[0])


def _draw_returns(panel: "Axes", returns: Mapping[int, Array]) -> None:
    edges = np.histogram_bin_edges(np.concatenate(list(returns.values())), 20).tolist()
    colours = [COLOURS[skill % len(COLOURS)] for skill in returns]
    panel.hist(list(returns.values()), edges, stacked=True, color=colours)
    panel.set(title="returns by skill", xlabel="sum of the task's rewards", ylabel="episodes")


def _draw_growth(panels: "Iterator[Axes]", growth: Mapping[str, Line]) -> None:
    for (across, values), what, panel in zip(growth.values(), growth, panels, strict=True):
        panel.plot(across, values, color=COLOURS[0])
        panel.set(title="running log q in training", xlabel=what, ylabel="nats")
        panel.locator_params(axis="x", nbins=5)  # so that labels do not overlap


def _growth(run: Path) -> dict[str, Line]:
    """Returns the running log q over episodes and over steps, as far as the run logs them."""
    if not (run / CSV_NAME).exists():
        return {}
    columns = read_result(run / CSV_NAME).columns
    found = {}
    for column, what in _ACROSS.items():
        if column in columns and _RUNNING in columns:
            values, across = columns[_RUNNING], columns[column]
            known = np.isfinite(across) & np.isfinite(values)
            if known.any():
                found[what] = across[known], values[known]
    return found
