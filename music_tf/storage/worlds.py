"""`worlds.csv`: measurements of skills in each stage of a changing world."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from music_tf.errors import EnvironmentFault
from music_tf.files import read_at_most, replace_file
from music_tf.types import all_finite

WORLDS_NAME = "worlds.csv"
COLUMNS = {
    "epoch": "epochs of training by then",
    "env_steps": "environment steps over all ranks by then",
    "stage": "stage of the world that was learned in until then, counted from 0",
    "next_stage": "stage that learning goes on in; the same at the end of a run",
    "world": "stage that the episodes were played in",
    "skill": "which skill acted; blank where there is one policy",
    "learned_in": "stage in which that skill was learned last",
    "episodes": "how many were played",
    "return": "mean sum of the environment's own rewards",
    "length": "mean steps of an episode",
    "success_rate": "share that ended at the goal; blank without goals",
    "end_0": "mean end, first number of the descriptor; blank for more than three",
    "end_1": "the second of them",
    "end_2": "the third of them",
    "spread": "how far ends of the skill's episodes lie apart, mean over pairs",
    "hausdorff": "Hausdorff distance to where the nearest other skill has been in that world",
    "moved": "how far the end is from that of its first row with the same world",
}
"""Every column with its meaning, in order; the names are public."""
_NEVER_BLANK = ("epoch", "stage", "next_stage", "world")
ENDS = ("end_0", "end_1", "end_2")
Cells = Mapping[str, float | None]
_LARGEST = 64 * 2**20


class WorldsTable:
    """The table in memory and on disk; a full disk is a warning, and no row is lost."""

    def __init__(self, path: Path, warn: Callable[[str, OSError, Path], None]) -> None:
        self._path, self._warn = path / WORLDS_NAME, warn
        self._rows: list[dict[str, str]] = []

    def resume(self, epoch: int) -> bool:
        """Keeps rows of changes up to an epoch; returns whether there are any of this epoch."""
        stored = _whole_rows(self._path)
        if stored is None:
            return False
        changes = (row for row in stored if row["stage"] != row["next_stage"])
        self._rows = [row for row in changes if int(row["epoch"]) <= epoch]
        self._write()
        return any(int(row["epoch"]) == epoch for row in self._rows)

    def add(self, rows: Sequence[Cells]) -> None:
        """Adds rows, computes their column `moved` from earlier rows, and writes the table."""
        for row in rows:
            cells = {name: _cell(row.get(name)) for name in COLUMNS}
            self._rows.append(cells | {"moved": _cell(self._moved(cells))})
        self._write()

    def _moved(self, row: Mapping[str, str]) -> float | None:
        place = row["skill"], row["world"]
        same = (each for each in self._rows if (each["skill"], each["world"]) == place)
        first = next(same, row)
        ends = [
            (float(row[name]), float(first[name])) for name in ENDS if row[name] and first[name]
        ]
        return sum((now - before) ** 2 for now, before in ends) ** 0.5 if ends else None

    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        try:
            replace_file(self._path, text.getvalue().encode())
        except OSError as error:
            self._warn("worlds", error, self._path)


def read_worlds(directory: Path) -> list[dict[str, float]]:
    rows = _whole_rows(directory / WORLDS_NAME) or []
    return [{name: float(cell) for name, cell in row.items() if cell} for row in rows]


def _whole_rows(path: Path) -> list[dict[str, str]] | None:
    try:
        text = read_at_most(path, _LARGEST).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read ({error.strerror})") from error
    return [row for row in csv.DictReader(io.StringIO(text)) if _is_whole(row)]


def _is_whole(row: Mapping[str, str | None]) -> bool:
    """Whether a row has all columns, with a number or nothing in each, and its epoch and stages."""
    cells = [cell for cell in row.values() if cell is not None]
    if list(row) != list(COLUMNS) or len(cells) != len(COLUMNS):
        return False
    if not all((row[name] or "").isdecimal() for name in _NEVER_BLANK):
        return False
    try:
        return all(math.isfinite(float(cell or 0)) for cell in cells)
    except ValueError:
        return False


def _cell(value: float | None) -> str:
    if value is None or not all_finite(value):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(int(value))
