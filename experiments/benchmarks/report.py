"""The record of a benchmark: its header, the file, the tables."""

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.arithmetic import ddpg_update_flop
from benchmarks.keys import KEYS, WIDEST_SPREAD, too_wide
from benchmarks.processes import sizes_of
from music_tf.errors import UsageError
from music_tf.process import available_cores
from music_tf.storage.run_directory import commit, processor

_PACKAGES = (
    "tensorflow",
    "keras",
    "numpy",
    "mujoco",
    "gymnasium",
    "gymnasium-robotics",
    "mpi4py",
    "stable-baselines3",
    "torch",
)
_ROOT = Path(__file__).resolve().parents[2]


def header(command: str, repetitions: int, quick: bool) -> dict[str, Any]:
    """Returns what the numbers were measured with and on; taken before the first of them."""
    return {
        "command": command,
        "commit": commit(_ROOT),
        "versions": {"python": platform.python_version()} | _versions(),
        "machine": {
            "cpu": processor(),
            "cores": available_cores(),
            "load_at_start": round(os.getloadavg()[0], 2),
        },
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "repetitions": repetitions,
        "quick": quick,
        "sizes": sizes_of(quick),
        "ddpg_update_flop": ddpg_update_flop(),
    }


def load(path: Path) -> dict[str, Any]:
    """Returns a stored record.

    Raises:
        UsageError: There is none, or it is not one.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"--table: cannot read {path} ({error.strerror}); measure first with: make bench"
        ) from error
    except ValueError as error:
        raise UsageError(f"--table: {path} is not JSON ({error})") from error
    if not isinstance(stored, dict) or not isinstance(stored.get("header"), dict):
        raise UsageError(f"--table: {path} was not written by this benchmark: it has no header")
    return stored


def rich_table(record: Mapping[str, Any]) -> Table:
    """Returns the table for a terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("key", "median", "min", "max", "unit", "better"):
        table.add_column(column, no_wrap=True)
    table.add_column("meaning")
    for name, key in KEYS.items():
        if name in record:
            table.add_row(name, *_numbers(record[name]), key.unit, key.better, key.meaning)
        elif name in record["left_out"]:
            table.add_row(name, "-", "-", "-", key.unit, key.better, record["left_out"][name])
    return table


def markdown(record: Mapping[str, Any]) -> str:
    """Returns the table, and a line on where it was measured, for a documentation page."""
    lines = ["| key | median | min | max | unit | better |", "|---|---|---|---|---|---|"]
    for name, key in KEYS.items():
        if name in record:
            median, low, high = _numbers(record[name])
            lines.append(f"| `{name}` | {median} | {low} | {high} | {key.unit} | {key.better} |")
    about = record["header"]
    machine, versions = about["machine"], about["versions"]
    lines += [
        "",
        f"{'Tiny sizes (--quick), not a measurement. ' if about['quick'] else ''}"
        f"{about['repetitions']} repetitions on {machine['cores']} cores of {machine['cpu']}, load "
        f"{machine['load_at_start']} at the start, {about['date'][:10]}, commit "
        f"{(about['commit'] or 'unknown')[:12]}, Python {versions['python']}, TensorFlow "
        f"{versions['tensorflow']}, MuJoCo {versions['mujoco']}: `{about['command']}`",
    ]
    lines += [f"- `{name}` left out: {reason}" for name, reason in record["left_out"].items()]
    lines += [f"- {warning}" for warning in [spread_warning(record)] if warning]
    return "\n".join(lines) + "\n"


def spread_warning(record: Mapping[str, Any]) -> str:
    """Returns what to say of keys whose repetitions differ too much, empty where none does."""
    wide = too_wide(record)
    if not wide:
        return ""
    return (
        f"do not quote {', '.join(wide)}: the repetitions lie more than {WIDEST_SPREAD:.0%} apart; "
        "measure again while the machine does nothing else"
    )


def _numbers(found: Mapping[str, float]) -> list[str]:
    return [f"{found[name]:.3g}" for name in ("median", "min", "max")]


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found
