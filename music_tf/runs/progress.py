"""What a training run shows while it goes on: a bar on a terminal, else a line per epoch."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, TextIO, TypeAlias, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from music_tf.process import launched_world_size

Row: TypeAlias = Mapping[str, float | str | None]
"""Cells of a table by column."""

_MINUTE = 60
_HOUR = 3600
_PLAIN_WIDTH = 120
TERMINAL_VARIABLE = "MUSIC_TF_TERMINAL"
"""Set to 1 by a launcher that passes the ranks' output on to a terminal."""


class _Screen:
    """Where output goes; once that is a full disk or a terminal that is gone, it is dropped."""

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

    def __init__(
        self, leading: str = "eval/success_rate", *, shown: bool = True, file: TextIO | None = None
    ) -> None:
        """Looks at where the output goes.

        Args:
            leading: The metric to show, the one that the recipe is about.
            shown: Whether this rank is the one that shows anything.
            file: Where to write; standard output by default.
        """
        self.leading = leading
        self._shown = shown
        self._interactive = shown and _is_interactive(file or sys.stdout)
        screen = cast(TextIO, _Screen(file or sys.stdout))
        self._console = Console(file=screen) if self._interactive else _plain_console(screen)
        self._bar: Bar | None = None
        self._total = 0
        self._first = 0
        self._done = 0
        self._started = time.monotonic()
        self._note = ""

    def banner(self, lines: Iterable[str]) -> None:
        """Shows what is about to be trained."""
        if self._shown:
            for line in lines:
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def start(self, total_epochs: int, first_epoch: int) -> None:
        """Begins; `first_epoch` epochs of `total_epochs` were done before."""
        self._total, self._first, self._done = total_epochs, first_epoch, first_epoch
        self._started = time.monotonic()
        if not self._interactive:
            return
        self._bar = Bar(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[note]}", markup=False),
            console=self._console,
        )
        self._bar.start()
        self._bar.add_task("training", total=total_epochs, completed=first_epoch, note="")

    def cycle(self, done: int, total: int, env_steps: int) -> None:
        """Shows that `done` of an epoch's `total` cycles are over, after `env_steps` steps."""
        if self._bar is not None:
            share = self._done + done / max(1, total)
            note = f"cycle {done}/{total}  steps {env_steps:,}  {self._note}"
            self._show(share, note)

    def epoch(self, row: Mapping[str, float | None]) -> None:
        """Shows the metrics of an epoch that is over."""
        self._done += 1
        self._note = self._summary(row)
        if self._bar is not None:
            steps = int(row.get("time/env_steps") or 0)
            self._show(self._done, f"steps {steps:,}  {self._note}")
        elif self._shown:
            steps = int(row.get("time/env_steps") or 0)
            self._console.print(
                f"epoch {self._done}/{self._total}  steps {steps}  {self._note}"
                f"{self._times(self._done)}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def go_back(self, epochs: int) -> None:
        """Takes epochs back: so many are over now."""
        self._done = epochs

    def stop(self) -> None:
        """Ends the bar; may be called again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def final_table(
        self, rows: Mapping[str, Row], title: str = "behaviour", corner: str = "metric"
    ) -> None:
        """Shows metrics (rows) of several policies (columns), or what `corner` says of rows."""
        if self._shown:
            self._console.print(behaviour_table(rows, title, corner))

    def _summary(self, row: Mapping[str, float | None]) -> str:
        parts = [f"fps {row.get('time/fps') or 0:.0f}  "]
        value = row.get(self.leading)
        if value is not None:
            parts.append(f"{self.leading} {value:.3f}  ")
        return "".join(parts)

    def _times(self, done: float) -> str:
        elapsed = time.monotonic() - self._started
        trained = done - self._first
        left = elapsed / trained * (self._total - done) if trained > 0 else None
        return f"elapsed {_duration(elapsed)} left {_duration(left)}"

    def _show(self, completed: float, note: str) -> None:
        if self._bar is not None:
            task = self._bar.task_ids[0]
            note = f"{note}{self._times(completed)}"
            self._bar.update(task, completed=completed, note=note, refresh=True)


def behaviour_table(rows: Mapping[str, Row], title: str, corner: str = "metric") -> Table:
    """Returns a table of metrics (rows) by policy (columns); what is unknown stays blank."""
    table = Table(title=title, title_justify="left")
    table.add_column(corner)
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in rows.items():
        table.add_row(name, *(_cell(row.get(column)) for column in columns))
    return table


def _cell(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.3f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    whole = int(seconds)
    hours, minutes = whole // _HOUR, whole % _HOUR // _MINUTE
    return f"{hours}:{minutes:02d}:{whole % _MINUTE:02d}"


def _is_interactive(file: TextIO) -> bool:
    """Tells whether somebody watches; under a launcher a rank's output always looks like that."""
    if os.environ.get("TERM", "") in {"", "dumb"} or not file.isatty():
        return False
    return launched_world_size() == 1 or os.environ.get(TERMINAL_VARIABLE) == "1"


def _plain_console(file: TextIO) -> Console:
    return Console(file=file, force_terminal=False, no_color=True, width=_PLAIN_WIDTH)
