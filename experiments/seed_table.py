"""Tables of stored results: `python experiments/seed_table.py experiments/results/music_push`.

Prints a markdown table of a folder of `seedN.csv`: when each seed first met a condition, whether it
held in the evaluations after, and its last evaluation. The tables of the README are those of
`tables.py`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from music_tf.training.results import Numbers, group_and_seed, read_result

COLUMNS = {
    "eval/success_rate": "success",
    "eval/object_moved_rate": "moved",
    "eval/object_on_support_rate": "on support",
    "eval/object_comotion_m": "co-motion (m)",
    "eval/object_lift_rate": "lifted",
    "eval/object_displacement_m": "displacement (m)",
    "eval/object_coverage": "cells",
}
Conditions = Mapping[str, float]


def meets(columns: Mapping[str, Numbers], conditions: Conditions) -> npt.NDArray[np.bool_]:
    """Returns for each epoch whether every named metric is there and at least its limit."""
    epochs = len(columns["time/elapsed_s"])
    none = np.full(epochs, np.nan)
    met = [columns.get(name, none) >= limit for name, limit in conditions.items()]
    return np.all(met, axis=0) if met else np.ones(epochs, np.bool_)


def first_time(columns: Mapping[str, Numbers], conditions: Conditions) -> tuple[int | None, float]:
    """Returns the row where the conditions were first met, and how often they were after.

    Returns:
        The row, None if they never were, and the share of later evaluations that meet them.
    """
    met = meets(columns, conditions)
    if not met.any():
        return None, 0.0
    first = int(np.argmax(met))
    later = met[first + 1 :]
    return first, float(later.mean()) if later.size else 1.0


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in markdown."""
    return "\n".join([_line(header), "|" + "---|" * len(header), *map(_line, rows)])


def table(folder: Path, conditions: Conditions) -> str:
    """Returns the markdown table of all seeds in a folder."""
    files = sorted(folder.glob("seed*.csv"))
    sample = read_result(files[0]).columns
    shown = [name for name in COLUMNS if np.isfinite(sample.get(name, np.array([np.nan]))[-1])]
    header = ["seed", "minutes", "steps", "first met", "held after", *(COLUMNS[n] for n in shown)]
    rows = []
    for path in files:
        columns = read_result(path).columns
        minutes = columns["time/elapsed_s"] / 60.0
        when, held = first_time(columns, conditions)
        rows.append(
            [
                str(group_and_seed(path)[1]),
                f"{minutes[-1]:.1f}",
                f"{columns['time/env_steps'][-1]:,.0f}",
                "never" if when is None else f"{minutes[when]:.1f} min",
                f"{held:.0%}",
                *(f"{columns[name][-1]:.2f}" for name in shown),
            ]
        )
    return markdown(header, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line and prints one table a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of seedN.csv")
    parser.add_argument(
        "--condition",
        nargs=2,
        action="append",
        metavar=("METRIC", "LIMIT"),
        default=[],
        help="a metric and the least value it must have; may be repeated",
    )
    given = parser.parse_args(arguments)
    conditions = {name: float(limit) for name, limit in given.condition}
    for folder in given.folders:
        sys.stdout.write(f"{folder.name}\n\n{table(folder, conditions)}\n\n")


if __name__ == "__main__":
    main()
