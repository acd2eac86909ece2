"""mpirun: which one there is, whose it is, and what it needs to start ranks on this machine."""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from music_tf.probes import Probe, run_command

_OPEN_MPI = "Open MPI"
_MARKS = {_OPEN_MPI: _OPEN_MPI, "OpenRTE": _OPEN_MPI, "HYDRA": "MPICH", "Intel": "Intel MPI"}
"""Libraries by what their mpirun says of itself."""


def find_mpirun() -> str | None:
    """Returns the mpirun beside this interpreter, else the one on PATH, else None."""
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("mpirun")


def ask_version(mpirun: str, seconds: float) -> Probe:
    """Asks an mpirun for its version."""
    return run_command([mpirun, "--version"], seconds=seconds, environment=needed(os.environ))


def flavour(version_text: str) -> str:
    """Returns the MPI library that wrote `version_text`, the answer to `mpirun --version`."""
    return next((name for mark, name in _MARKS.items() if mark in version_text), "unknown MPI")


def rank_words(mpirun: str, library: str, ranks: int) -> list[str]:
    """Returns the words before a program that several ranks run, more than there are cores or not.

    Args:
        mpirun: Its path.
        library: What `flavour` says of it.
        ranks: How many.
    """
    open_mpi = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]
    return [mpirun, "-n", str(ranks), *(open_mpi if library == _OPEN_MPI else [])]


def needed(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables that Open MPI insists on and that are not given."""
    lacking: dict[str, str] = {}
    if os.geteuid() == 0:
        lacking |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not given.get("HOME"):
        lacking["HOME"] = _home()
    return lacking


def _home() -> str:
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = ""
    return home if Path(home).is_dir() and home else tempfile.gettempdir()
