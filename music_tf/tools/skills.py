"""One picture of the skills of a run: where they go, who is taken for whom, what they earn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from music_tf.measures.skills import running_average
from music_tf.runs.skills import Followed
from music_tf.storage.metrics import CSV_NAME
from music_tf.storage.results import read_result
from music_tf.tools.drawing import appearing
from music_tf.tools.paths import COLOURS

_MOST_TRACES = 20
_PLANE = 2


def draw_skills(run: Path, followed: Sequence[Followed], out: Path) -> None:
    """Writes a PNG of several panels.

    Traces of the first two numbers by which skills are told apart, or of the first over time; which
    skill is named in which share of the steps of which; returns by skill; and how log q grew in
    training: by episodes where the run counts them, the average that DIAYN's codes log.

    Args:
        run: The run directory, for its table of metrics.
        followed: What each skill did.
        out: A .png file; it appears when it is complete.

    Raises:
        EnvironmentFault: It cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load

    named = [one.named for one in followed if one.named is not None]
    growth = _growth(run)
    panels = 2 + bool(named) + (growth is not None)
    figure = Figure(figsize=(4.2 * panels, 3.8), layout="constrained")
    axes = iter(figure.subplots(1, panels, squeeze=False)[0])

    panel = next(axes)
    for one in followed:
        colour, size = COLOURS[one.skill % len(COLOURS)], one.descriptors.shape[-1]
        for trace, steps in list(zip(np.swapaxes(one.descriptors, 0, 1), one.length, strict=True))[
            :_MOST_TRACES
        ]:
            kept = trace[:steps]
            across = kept[:, 0] if size >= _PLANE else np.arange(steps)
            panel.plot(across, kept[:, min(1, size - 1)], color=colour, lw=0.8, alpha=0.7)
        panel.plot([], [], color=colour, label=f"skill {one.skill}")
    panel.set_title("what skills are told apart by" + (": first two" if size > _PLANE else ""))
    if len(followed) <= len(COLOURS):
        panel.legend(fontsize="x-small")

    if named:
        panel = next(axes)
        panel.imshow(np.stack(named), vmin=0.0, vmax=1.0, cmap="Blues")
        panel.set(title="share of steps", xlabel="skill that is named", ylabel="skill that acts")
        panel.set_yticks(range(len(followed)), [str(one.skill) for one in followed])
        panel.set_xticks(range(len(named[0])))

    panel = next(axes)
    returns = [one.returns for one in followed]
    edges = np.histogram_bin_edges(np.concatenate(returns), 20)
    colours = [COLOURS[one.skill % len(COLOURS)] for one in followed]
    panel.hist(returns, edges, stacked=True, color=colours)
    panel.set(title="returns by skill", xlabel="sum of the task's rewards", ylabel="episodes")

    if growth is not None:
        panel, (across, values, what) = next(axes), growth
        panel.plot(across, values, color=COLOURS[0])
        averaged = ", running average" if what == "episodes" else ""
        panel.set(title=f"log q in training{averaged}", xlabel=what, ylabel="nats")
    with appearing(out) as draft:
        figure.savefig(draft, dpi=100, format="png")


def _growth(run: Path) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Returns the running log q over episodes or steps; None where the run has logged none."""
    if not (run / CSV_NAME).exists():
        return None
    columns = read_result(run / CSV_NAME).columns
    column = "time/episodes" if "time/episodes" in columns else "time/env_steps"
    values, across = columns.get("skill/log_likelihood"), columns[column]
    known = np.isfinite(across) if values is None else np.isfinite(across) & np.isfinite(values)
    if values is None or not known.any():
        return None
    values, across = values[known], across[known]
    if column == "time/env_steps":
        return across, values, "environment steps"
    counts = np.diff(across, prepend=0.0).astype(np.int64)
    return across, running_average(values, counts), "episodes"
