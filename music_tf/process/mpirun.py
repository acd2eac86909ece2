"""Finds mpirun, its MPI library, and the options and variables that it needs."""

import contextlib
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from music_tf.errors import EnvironmentFault
from music_tf.process.children import Probe, run_command

OPEN_MPI = "Open MPI"
_MARKS = {OPEN_MPI: OPEN_MPI, "OpenRTE": OPEN_MPI, "HYDRA": "MPICH", "Intel": "Intel MPI"}
"""Libraries by a word in the version text of their mpirun."""
_INFO_SECONDS = 20.0
_SESSIONS_VARIABLE = "PRTE_MCA_prte_tmpdir_base"
"""Folder in which Open MPI 5 keeps the files of a running job."""


def find_mpirun() -> str | None:
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("mpirun")


def ask_version(mpirun: str, seconds: float) -> Probe:
    return run_command([mpirun, "--version"], seconds=seconds, environment=needed(os.environ))


def flavour(version_text: str) -> str:
    return next((name for mark, name in _MARKS.items() if mark in version_text), "unknown MPI")


def survives_losses(library: str) -> bool:
    """Whether the library of mpirun lets a job go on without a rank."""
    mpirun = find_mpirun()
    if mpirun is None or library != OPEN_MPI:
        return False
    command = [str(Path(mpirun).with_name("ompi_info"))]
    answer = run_command(command, seconds=_INFO_SECONDS, environment=needed(os.environ))
    return "FT MPI support: yes" in answer.output


def rank_words(mpirun: str, library: str, ranks: int) -> list[str]:
    """Returns the command that starts ranks, also more than there are cores."""
    open_mpi = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]
    return [mpirun, "-n", str(ranks), *(open_mpi if library == OPEN_MPI else [])]


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that Open MPI requires and that are not given."""
    lacking: dict[str, str] = {}
    if os.geteuid() == 0:
        lacking |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not environment.get("HOME"):
        home = ""
        with contextlib.suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
        lacking["HOME"] = home if home and Path(home).is_dir() else tempfile.gettempdir()
    return lacking


@contextlib.contextmanager
def own_sessions(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Gives one mpirun a folder: a killed job's files fail one of equal process id (code 213)."""
    if _SESSIONS_VARIABLE in environment:
        yield {}
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="music_tf-mpirun-", ignore_cleanup_errors=True)
    except OSError as error:
        raise EnvironmentFault(
            f"mpirun needs a place for temporary files: {error}\n"
            "set TMPDIR to a folder that can be written"
        ) from None
    with folder as path:
        yield {_SESSIONS_VARIABLE: path}
