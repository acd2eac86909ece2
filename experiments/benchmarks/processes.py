"""Starts measurements, each in a process of its own, and reads what they found."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import programs
from benchmarks.sizes import FULL, QUICK
from music_tf.cli.mpirun import (
    ask_version,
    find_mpirun,
    flavour,
    needed,
    own_sessions,
    rank_words,
)
from music_tf.errors import EnvironmentFault
from music_tf.process import available_cores, run_command

RANKS = 2
_SECONDS = 900.0
_ROOT = Path(__file__).resolve().parents[2]
_RANKED = frozenset({"ranks", "reductions", "guards"})
_NEED_MPI = _RANKED | {"memory"}
_NEED_TWO_CORES = frozenset({"update_2t"})


def why_not(probe: str) -> str:
    """Returns why a measurement cannot be taken on this machine, empty where it can."""
    if probe in _NEED_MPI and find_mpirun() is None:
        return "needs mpirun, and it was not found; pip install 'music_tf[mpi]'"
    if probe in _NEED_TWO_CORES and available_cores() < RANKS:
        return "needs two cores"
    return ""


def take(probe: str, quick: bool, ranks: int = RANKS) -> dict[str, Any]:
    """Takes one measurement, those of several ranks with `ranks` of them.

    Raises:
        EnvironmentFault: It failed or took too long.
    """
    if probe == "help":
        return programs.measure_help()
    with tempfile.TemporaryDirectory() as folder, own_sessions(os.environ) as sessions:
        out = Path(folder) / "found.json"
        words = ["-m", "benchmarks.probe", probe, str(out), "quick" if quick else "full"]
        start = time.monotonic()
        done = run_command(
            [*_interpreter(probe, ranks), *words],
            seconds=_SECONDS,
            environment={**_environment(), **sessions},
        )
        if not done.ok or not out.exists():
            raise EnvironmentFault(
                f"the measurement {probe!r} failed with exit code {done.code}: {done.reason}"
            )
        text = out.read_text(encoding="utf-8")
    if probe == "first_step":
        return {"seconds": float(text) - start}
    found: dict[str, Any] = json.loads(text)
    if probe in _RANKED and found["ranks"] != ranks:
        raise EnvironmentFault(f"mpirun started {found['ranks']} ranks, expected {ranks}")
    return found


def sizes_of(quick: bool) -> dict[str, Any]:
    """Returns the counts of a repetition, for the record."""
    return dict(vars(QUICK if quick else FULL))


def _interpreter(probe: str, ranks: int) -> list[str]:
    if probe not in _RANKED:
        return [sys.executable]
    mpirun = find_mpirun() or "mpirun"
    library = flavour(ask_version(mpirun, 60.0).output)
    return [*rank_words(mpirun, library, ranks), sys.executable, "-m", "mpi4py"]


def _environment() -> dict[str, str]:
    """Returns what finds these modules and the package, and what Open MPI insists on."""
    paths = [str(_ROOT / "experiments"), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **needed(os.environ),
    }
