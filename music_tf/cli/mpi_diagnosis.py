"""Judges whether mpirun and mpi4py belong together, from two ranks that tried to meet."""

from music_tf.cli.diagnoses import INSTALL_MPI, Finding
from music_tf.process import Probe

RANKS = 2
MARK = "rank of"
"""Starts the line that each rank writes: `MARK SIZE LIBRARY`."""

_PATTERNS = (
    (
        "run as root",
        "mpirun refuses to run as root",
        "music-tf launch allows it; by hand: export OMPI_ALLOW_RUN_AS_ROOT=1 "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    ),
    (
        "not enough slots",
        "mpirun sees fewer slots than ranks",
        "music-tf launch oversubscribes; by hand: mpirun --map-by :OVERSUBSCRIBE ...",
    ),
    (
        "Failed initializing opal",
        "mpirun cannot set itself up: HOME or TMPDIR is unset, or cannot be written",
        "export HOME and TMPDIR, each a folder of yours",
    ),
    ("No module named 'mpi4py'", "mpi4py is not installed in this environment", INSTALL_MPI),
    ("cannot load MPI library", "mpi4py finds no MPI library to load", INSTALL_MPI),
    ("cannot open shared object file", "mpi4py finds no MPI library to load", INSTALL_MPI),
    (
        "unsupported PMI version",
        "mpirun and mpi4py belong to different MPI libraries: the ranks cannot reach mpirun",
        INSTALL_MPI,
    ),
)


def judge_mpi(mpirun: str | None, mpirun_flavour: str, probe: Probe | None) -> Finding:
    """Judges the meeting of two ranks.

    Args:
        mpirun: Its path, None if there is none.
        mpirun_flavour: What `flavour` says of it.
        probe: The job of two ranks; None if it was not started.
    """
    if mpirun is None or probe is None:
        return Finding("mpi", "one process only", "mpirun was not found", INSTALL_MPI)
    seen = sorted({line for line in probe.output.splitlines() if line.startswith(MARK)})
    worlds = [line.removeprefix(MARK).strip() for line in seen]
    facts = f"{mpirun} ({mpirun_flavour})"
    if probe.ok and len(worlds) == 1 and worlds[0].startswith(f"{RANKS} "):
        library = worlds[0].removeprefix(f"{RANKS} ")
        return Finding("mpi", f"{facts}, two ranks met in {probe.seconds:.1f} s through {library}")
    return Finding("mpi", facts, *_fault(mpirun_flavour, worlds, probe))


def _fault(mpirun_flavour: str, worlds: list[str], probe: Probe) -> tuple[str, str]:
    """Returns cause and cure of a meeting that failed."""
    if worlds and not worlds[0].startswith(f"{RANKS} "):
        size, _, library = worlds[0].partition(" ")
        return (
            f"mpirun and mpi4py belong to different MPI libraries: {RANKS} ranks were started by "
            f"{mpirun_flavour}, each sees a world of {size} through {library}",
            INSTALL_MPI,
        )
    for mark, cause, cure in _PATTERNS:
        if mark in probe.errors + probe.output:
            return cause, cure
    return probe.reason, INSTALL_MPI
