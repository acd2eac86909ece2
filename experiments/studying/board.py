"""Shows how far a study has come: a table on a terminal, else a line for each change."""

import math
import sys
import time
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from music_tf.tools.curves import LEADING
from studying import record
from studying.plan import Run
from studying.pool import DONE, FAILED, RUNNING, WAITING, Pool

_REFRESH_SECONDS = 1.0
_PLAIN_WIDTH = 120


class Board:
    """Shows a pool of runs while it works; a context manager."""

    def __init__(self, pool: Pool, file: TextIO | None = None) -> None:
        """Looks at where the output goes."""
        self._pool = pool
        self._shown = dict(pool.states)
        self._live: Live | None = None
        self._next = 0.0
        out = file or sys.stdout
        if out.isatty():
            self._console = Console(file=file)
            self._live = Live(console=self._console, auto_refresh=False)
        else:
            self._console = Console(file=file, no_color=True, width=_PLAIN_WIDTH)

    def __enter__(self) -> "Board":
        """Begins to show."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the last state on the screen."""
        if self._live is not None:
            self._live.update(table(self._pool), refresh=True)
            self._live.stop()

    def show(self) -> None:
        """Shows what has changed; may be called as often as one likes."""
        if self._live is None:
            self._tell_changes()
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _REFRESH_SECONDS
            self._live.update(table(self._pool), refresh=True)

    def say(self, line: str) -> None:
        """Writes one line."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _tell_changes(self) -> None:
        for run in self._pool.runs:
            state = self._pool.states[run.name]
            if state != self._shown[run.name]:
                self._shown[run.name] = state
                self.say(f"{state}: {run.name}{_position(run, state)}")


def table(pool: Pool) -> Table:
    """Returns a row for each condition on each environment, with its runs that go on."""
    found = Table(title=f"{pool.runs[0].study}: {summary(pool)}", title_justify="left")
    for column in ("condition", "environment", "done", "seeds that go on or failed"):
        found.add_column(column)
    rows: dict[tuple[str, str], list[Run]] = {}
    for run in pool.runs:
        rows.setdefault((run.condition, run.env_id), []).append(run)
    for (condition, env_id), runs in rows.items():
        done = sum(pool.states[run.name] == DONE for run in runs)
        others = [
            f"{run.seed} {pool.states[run.name]}{_position(run, pool.states[run.name])}"
            for run in runs
            if pool.states[run.name] not in (DONE, WAITING)
        ]
        found.add_row(condition, env_id, f"{done}/{len(runs)}", "\n".join(others))
    return found


def summary(pool: Pool) -> str:
    """Returns how many runs are in each state, in words."""
    states = dict.fromkeys(pool.states.values())
    return ", ".join(f"{pool.count(state)} {state}" for state in states)


def _position(run: Run, state: str) -> str:
    """Returns how far a run that goes on, or ended, has come."""
    latest = record.progress(run) if state in (RUNNING, DONE, FAILED) else {}
    if not latest:
        return ""
    leading = next((name for name in LEADING if math.isfinite(latest.get(name, math.nan))), "")
    value = f", {leading.partition('/')[2]} {latest[leading]:.2f}" if leading else ""
    minutes = latest["time/elapsed_s"] / 60.0
    return f", epoch {latest['epoch']:.0f}/{run.epochs}, {minutes:.1f} min{value}"
