"""Pictures of skills: traces, confusion matrix, returns, and log q during training."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from music_tf.errors import MusicError
from music_tf.runs.skills import SkillEpisodes
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import read_result
from music_tf.tools.curves import AXES, Curve, RunCurves, curve_of
from music_tf.tools.drawing import COLOURS, appearing
from music_tf.tools.object_paths import Picture
from music_tf.types import Array, Episodes

if TYPE_CHECKING:  # a second to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TRACES, _MOST_TICKS = 20, 12
_PLANE = 2
_RUNNING = "skill/log_likelihood_running"


def draw_skills(run: Path, skills: Sequence[SkillEpisodes], out: Path) -> None:
    """Draws traces, confusion matrix, returns, and log q during training into a .png file."""
    named = [played.named for played in skills if played.named is not None]
    growth = _growth(run)
    figure, panels = _figure(2 + bool(named) + bool(growth.up.size))

    panel = next(panels)
    for played in skills:
        colour, size = COLOURS[played.skill % len(COLOURS)], played.seen.shape[-1]
        for episode, steps in enumerate(played.length[:_MOST_TRACES]):
            trace = played.seen[episode, 1 : steps + 1]
            across = trace[:, 0] if size >= _PLANE else np.arange(steps)
            up = trace[:, min(1, size - 1)]
            panel.plot(across, up, color=colour, lw=0.8, alpha=0.7)
        if len(skills) <= len(COLOURS):  # each has its own colour, and its number at an end
            centred: dict[str, Any] = {"weight": "bold", "ha": "center", "va": "center"}
            box = {"facecolor": "white", "linewidth": 0.0, "pad": 1.0, "alpha": 0.8}
            x, y = float(across[-1]), float(up[-1])
            panel.text(x, y, str(played.skill), color=colour, bbox=box, **centred)
    axes = ("first descriptor", "second descriptor") if size >= _PLANE else ("step", "descriptor")
    panel.set(title="paths of skills", xlabel=axes[0], ylabel=axes[1])

    if named:
        panel = next(panels)
        panel.imshow(np.stack(named), vmin=0.0, vmax=1.0, cmap="Blues")
        panel.set(title="share of steps", xlabel="skill that is named", ylabel="skill that acts")
        step = 1 + len(named[0]) // _MOST_TICKS
        numbers = [str(played.skill) for played in skills]
        panel.set_yticks(range(0, len(numbers), step), numbers[::step])
        panel.set_xticks(range(0, len(named[0]), step))

    _draw_returns(next(panels), {played.skill: played.returns for played in skills})
    _draw_growth(panels, growth)
    with appearing(out) as draft:
        figure.savefig(draft, dpi=100, format="png")


def skills_in_training(run: Path, episodes: Episodes) -> Picture | None:
    """Returns returns by skill and log q of earlier epochs; None without several one-hot skills."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - a second

    numbers = episodes.skill_numbers()
    if numbers is None or episodes.skill.shape[-1] < 2:  # noqa: PLR2004
        return None
    growth = Curve(np.zeros(0), np.zeros(0))
    with contextlib.suppress(MusicError):  # an unreadable table does not end the run
        growth = _growth(run)
    figure, panels = _figure(1 + bool(growth.up.size))
    earned = episodes.reward.sum(axis=1)
    returns = {skill: earned[numbers == skill] for skill in np.unique(numbers).tolist()}
    _draw_returns(next(panels), returns)
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


def _draw_growth(panels: "Iterator[Axes]", growth: Curve) -> None:
    for panel in panels:
        panel.plot(*growth, color=COLOURS[0])
        text = "log-likelihood of the skill in training"
        panel.set(title=text, xlabel=AXES["steps"][2], ylabel="nats, running mean")


def _growth(run: Path) -> Curve:
    columns = read_result(run / CSV_NAME).columns if (run / CSV_NAME).exists() else {}
    return curve_of(RunCurves("", "", columns), _RUNNING, "steps")
