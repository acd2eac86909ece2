"""What a training run prints: a progress bar where the cursor can move, else a line per epoch."""

import contextlib
import importlib.util
import math
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO, TypeAlias, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from music_tf.config.key_metrics import KeyMetric
from music_tf.process.launcher import TERMINAL_VARIABLE, launched_world_size
from music_tf.types import Metrics

Row: TypeAlias = Mapping[str, float | str | None]
_PLAIN_WIDTH = 120
"""Width of tables without a terminal, and of lines if neither a terminal nor COLUMNS has one."""
_BAR_WIDTH, _GAP = 16, "  "


class _Screen:
    """A text stream that ignores a full disk or a terminal that has closed."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Progress:
    """Shows how far a run has come; silent on all ranks but the root."""

    def __init__(self, *, shown: bool = True, file: TextIO | None = None) -> None:
        """Shows a bar where a terminal or ipywidgets can move the cursor, else lines."""
        file = file or sys.stdout
        self.key_metrics: Sequence[KeyMetric] = ()
        self.heading = ""
        self._latest: list[str] = []  # texts of `key_metrics`; with a heading, the last ones known
        self._shown = shown
        screen = cast(TextIO, _Screen(file))
        self._console = Console(file=screen)
        widgets = self._console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
        self._interactive = shown and (widgets if self._console.is_jupyter else cursor_moves(file))
        if not self._interactive and not self._console.is_jupyter:
            self._console = Console(
                file=screen, force_terminal=False, no_color=True, width=_PLAIN_WIDTH
            )
        self._bar: Bar | None = None
        self._total = self._first = self._done = 0
        self._started, self._seconds = time.monotonic(), math.inf
        self._fps = ""

    def banner(self, lines: Iterable[str]) -> None:
        if self._shown:
            for line in lines:
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def start(self, total_epochs: int, first_epoch: int, seconds: float = math.inf) -> None:
        """Begins after `first_epoch` of `total_epochs`; `seconds` later the run ends anyway."""
        self._total, self._first, self._done = total_epochs, first_epoch, first_epoch
        self._started, self._seconds = time.monotonic(), seconds
        if not self._interactive:
            return
        self._bar = Bar(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=_BAR_WIDTH),
            TextColumn("{task.fields[note]}", markup=False),
            console=self._console,
            auto_refresh=not self._console.is_jupyter,  # which cannot print from other threads
        )
        self._bar.start()
        self._bar.add_task("training", total=total_epochs, completed=first_epoch, note="")

    def cycle(self, done: int, total: int, env_steps: int) -> None:
        self._move(self._done + done / max(1, total), f"cycle {done}/{total}", env_steps)

    def epoch(self, row: Mapping[str, float | None]) -> None:
        """Shows the metrics of an epoch that is over, as many as a line has room for."""
        self._done += 1
        steps = int(row.get("time/env_steps") or 0)
        texts = [metric.shown(row) for metric in self.key_metrics]
        if any(texts) or not self.heading:
            self._latest = [text for text in texts if text]
        self._fps = f"fps {row.get('time/fps') or 0:.0f}"
        self._move(self._done, "", steps)
        if self._shown and not (self._bar is not None and self._console.is_jupyter):
            width = shutil.get_terminal_size((_PLAIN_WIDTH, 0)).columns
            self.banner([self._line(f"epoch {self._done}/{self._total}", steps, self._done, width)])

    def go_back(self, epochs: int) -> None:
        self._done = epochs

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def policies(self, rows: Mapping[str, Metrics], title: str) -> None:
        """Shows metrics of several policies: a row per metric, a column per policy."""
        names = dict.fromkeys(name for row in rows.values() for name in row)
        shown = {"policy" if name == "ours" else name: row for name, row in rows.items()}
        if names:
            self.table({m: {name: row.get(m) for name, row in shown.items()} for m in names}, title)

    def table(self, rows: Mapping[str, Row], title: str, corner: str = "metric") -> None:
        """Shows named rows; `corner` heads the column of names, and unknown cells stay blank."""
        table = Table(title=title, title_justify="left")
        table.add_column(corner)
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        for column in columns:
            table.add_column(column, justify="right")
        for name, row in rows.items():
            cells = [row.get(column) for column in columns]
            texts = [cell if isinstance(cell, str | None) else f"{cell:z.3f}" for cell in cells]
            table.add_row(name, *texts)
        if self._shown:
            self._console.print(table)

    def _line(self, head: str, steps: int, done: float, width: int) -> str:
        elapsed = time.monotonic() - self._started
        trained, left = done - self._first, "?"
        if trained > 0:
            an_epoch = elapsed / trained
            epochs = math.ceil(min(self._total - self._first, self._seconds / an_epoch))
            left = as_clock(max(0.0, epochs * an_epoch - elapsed))  # no epoch is cut off
        parts = {
            head: 0,
            self.heading: 1,
            f"steps {steps:,}": 4,
            **dict.fromkeys(self._latest, 2),
            f"left {left}": 3,
            f"elapsed {as_clock(elapsed)}": 5,
            self._fps: 6,
        }
        return fitted(parts, width)

    def _move(self, completed: float, head: str, steps: int) -> None:
        if (bar := self._bar) is None:
            return
        before = f"epoch {self._total}/{self._total} {'':{_BAR_WIDTH}} "
        note = self._line(head, steps, completed, self._console.width - len(before))
        bar.update(bar.task_ids[0], completed=completed, note=note, refresh=True)


def cursor_moves(file: TextIO) -> bool:
    """Whether a stream is a terminal on which a bar can move; under mpirun all look like one."""
    alone = launched_world_size() == 1 or os.environ.get(TERMINAL_VARIABLE) == "1"
    return alone and os.environ.get("TERM", "") not in {"", "dumb"} and file.isatty()


def fitted(parts: Mapping[str, int], width: int) -> str:
    """Joins texts in their order; if they are too wide, those with low numbers are kept."""
    kept: set[str] = set()
    for text in sorted(filter(None, parts), key=lambda text: parts[text]):
        room = width - sum(len(other) + len(_GAP) for other in kept)
        if not kept or len(text) <= room:
            kept.add(text)
    return _GAP.join(text for text in parts if text in kept)


def as_clock(seconds: float) -> str:
    """Returns a duration as minutes and seconds, with hours if there are any."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
