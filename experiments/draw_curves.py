"""Draws metrics of stored runs: `python experiments/draw_curves.py a.csv b.csv --out curves.png`.

One panel a metric, one line a file, named after it. Comment lines of the files are skipped.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from tabulate import COLUMNS, Row, read_rows

mpl.use("Agg")
import matplotlib.pyplot as plt

AXES = {
    "steps": ("time/env_steps", 1e3, "environment steps (thousands)"),
    "minutes": ("time/elapsed_s", 60.0, "minutes of training"),
}


def draw(files: Sequence[Path], metrics: Sequence[str], axis: str, out: Path) -> None:
    """Writes a picture of metrics against steps or minutes.

    Args:
        files: CSV files with a row an epoch.
        metrics: Names of their columns, a panel each.
        axis: `steps` or `minutes`.
        out: The picture, `.png` or `.svg`.
    """
    column, unit, label = AXES[axis]
    figure, panels = plt.subplots(
        1, len(metrics), figsize=(5.5 * len(metrics), 3.8), squeeze=False, layout="constrained"
    )
    for path in files:
        rows = read_rows(path)
        for panel, metric in zip(panels[0], metrics, strict=True):
            points = [_point(row, column, metric, unit) for row in rows]
            shown = [point for point in points if point is not None]
            panel.plot(*zip(*shown, strict=True), label=path.stem.replace("_", " "), linewidth=1.6)
            panel.set(xlabel=label, title=COLUMNS.get(metric, metric))
            panel.grid(alpha=0.3)
    panels[0][-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def _point(row: Row, column: str, metric: str, unit: float) -> tuple[float, float] | None:
    across, up = row.get(column), row.get(metric)
    return None if across is None or up is None else (across / unit, up)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line and draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="metrics.csv files or copies of them")
    parser.add_argument(
        "--metric",
        action="append",
        dest="metrics",
        help="a column, may be repeated; default on-support rate and co-motion",
    )
    parser.add_argument("--axis", choices=sorted(AXES), default="steps", help="horizontal axis")
    parser.add_argument("--out", type=Path, default=Path("curves.png"), help="the picture")
    given = parser.parse_args(arguments)
    default = ["eval/object_on_support_rate", "eval/object_comotion_m"]
    draw(given.files, given.metrics or default, given.axis, given.out)


if __name__ == "__main__":
    main()
