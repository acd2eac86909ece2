"""Tables of stored results: `python experiments/seed_table.py experiments/results/music_push`.

Reads the `metrics.csv` copies of a folder, one a seed, and prints a markdown table: when each
seed first met a condition, whether it held in the evaluations after, and its last evaluation.
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

COLUMNS = {
    "eval/success_rate": "success",
    "eval/object_moved_rate": "moved",
    "eval/object_on_support_rate": "on support",
    "eval/object_comotion_m": "co-motion (m)",
    "eval/object_lift_rate": "lifted",
    "eval/object_displacement_m": "displacement (m)",
    "eval/object_coverage": "cells",
}
Row = Mapping[str, float | None]
Conditions = Mapping[str, float]


def read_rows(path: Path) -> list[Row]:
    """Returns the rows of a `metrics.csv`; blank cells become None."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [
            {name: float(cell) if cell else None for name, cell in row.items()}
            for row in csv.DictReader(lines)
        ]


def meets(row: Row, conditions: Conditions) -> bool:
    """Whether every named metric of a row is at least its limit."""
    return all((row.get(name) or 0.0) >= limit for name, limit in conditions.items())


def first_time(rows: Sequence[Row], conditions: Conditions) -> tuple[float | None, float]:
    """Returns the minutes until the conditions were first met, and how often they were after.

    Returns:
        Minutes, None if they never were, and the share of later evaluations that meet them.
    """
    for index, row in enumerate(rows):
        if meets(row, conditions):
            later = rows[index + 1 :]
            held = sum(meets(after, conditions) for after in later) / len(later) if later else 1.0
            return (row["time/elapsed_s"] or 0.0) / 60.0, held
    return None, 0.0


def table(folder: Path, conditions: Conditions) -> str:
    """Returns the markdown table of all seeds in a folder."""
    files = sorted(folder.glob("seed*.csv"))
    sample = read_rows(files[0])[-1]
    shown = [name for name in COLUMNS if sample.get(name) is not None]
    header = ["seed", "minutes", "steps", "first met", "held after", *(COLUMNS[n] for n in shown)]
    lines = [_line(header), "|" + "---|" * len(header)]
    for path in files:
        rows = read_rows(path)
        last = rows[-1]
        when, held = first_time(rows, conditions)
        cells = [
            path.stem.removeprefix("seed"),
            f"{(last['time/elapsed_s'] or 0.0) / 60:.1f}",
            f"{int(last['time/env_steps'] or 0):,}",
            "never" if when is None else f"{when:.1f} min",
            f"{held:.0%}",
            *(f"{last[name] or 0.0:.2f}" for name in shown),
        ]
        lines.append(_line(cells))
    return "\n".join(lines)


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
