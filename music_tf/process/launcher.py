"""The MPI launcher of this process: rank, number of ranks, and how ranks share the workers."""

import contextlib
import os
from pathlib import Path

from music_tf.errors import UsageError

ASKED_VARIABLE = "MUSIC_TF_RANKS"
"""Set by `music-tf launch` to the number of ranks that it asked for."""
LAUNCH_VARIABLE = "MUSIC_TF_LAUNCH"
"""Set by `music-tf launch` to its own options, as typed, for the line that resumes the run."""
END_VARIABLE = "MUSIC_TF_END"
"""Set by `music-tf launch` to the file of notes that ranks write for it, a line each."""
TERMINAL_VARIABLE = "MUSIC_TF_TERMINAL"
"""Set to 1 by a launcher that passes the ranks' output on to a terminal."""
_FAULT_TOLERANT_VARIABLE = "OMPI_MCA_mpi_ft_enable"
"""Set by Open MPI's `mpirun --with-ft ulfm` on all hosts."""
NOTES = "launch_"
"""How the name of that file begins, in the run directory."""
LEARNS, ENDED, ABORT, KILL = "learns", "ended", "abort", "kill"
"""Notes: a process of a host learns, and all ranks have met; the first rank ends with a code; the
job is to end with a code and a text; a rank is to be killed, by number and that of its process."""
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")


def launched_world_size() -> int:
    of_slurm = ("SLURM_STEP_NUM_TASKS",) if "SLURM_PROCID" in os.environ else ()
    return number_in(*_SIZE_VARIABLES, *of_slurm) or 1


def launched_rank() -> int:
    """Returns this process's rank from the launcher's variables; 0 without a launcher."""
    of_slurm = ("SLURM_PROCID",) if launched_world_size() > 1 else ()
    return number_in(*_RANK_VARIABLES, *of_slurm) or 0


def launch_words(ranks: int) -> str:
    """Returns the options of `music-tf launch` that start these ranks again; none for one rank."""
    return "" if ranks == 1 else os.environ.get(LAUNCH_VARIABLE) or f"-n {ranks}"


def number_in(*names: str) -> int | None:
    texts = (os.environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isdigit()), None)


def workers_per_rank(workers: int, ranks: int, fixed: bool = False) -> int:
    """Returns how many workers each rank has; a resumed run has a `fixed` number of workers."""
    if workers % ranks:
        fitting = [number for number in range(1, workers + 1) if workers % number == 0]
        other = f", or set --workers {ranks * max(1, round(workers / ranks))}"
        raise UsageError(
            f"--workers: expected a multiple of the {ranks} ranks, got {workers}\n"
            f"start {' or '.join(map(str, fitting[-4:]))} ranks{'' if fixed else other}"
        )
    return workers // ranks


def check_topology(
    workers: int, ranks: int, learners: int, device: str = "auto", fixed: bool = False
) -> None:
    """Checks that the workers can be divided among all ranks, or among actors with `learners`."""
    if device == "gpu" and (learners or ranks) > 1:
        raise UsageError(
            f"--device gpu: expected one rank that learns, got {learners or ranks}\n"
            "for example: --learners 1 --device gpu"
        )
    if not learners:
        workers_per_rank(workers, ranks, fixed)
        return
    actors = ranks - learners
    if actors < 1:
        raise UsageError(
            f"--learners {learners} needs at least {learners + 1} ranks, since the others act, got "
            f"{ranks}\n"
            f"for example: music-tf launch -n {2 * learners} train ... --learners {learners}"
        )
    if actors % learners:
        near = learners * max(1, round(actors / learners))
        raise UsageError(
            f"--learners: expected a multiple of the {learners} learners to act, got {actors}\n"
            f"start {learners + near} ranks, of which {near} act"
        )
    if workers % actors:
        learn = 1 if fixed and workers % learners else learners
        fitting = [n for n in range(learn, workers + 1, learn) if workers % n == 0]
        near = min(fitting, key=lambda number: abs(number - actors), default=0)
        fewer = "" if learn == learners else f" --learners {learn} and"
        cures = [f"start{fewer} {learn + near} ranks, of which {near} act"] if near else []
        if not fixed:
            cures.append(f"set --workers {actors * max(1, round(workers / actors))}")
        raise UsageError(
            f"--workers: expected a multiple of the {actors} actors, got {workers}\n"
            + ", or ".join(cures)
        )


def is_elastic() -> bool:
    """Whether mpirun lets a job go on without a rank; `music-tf launch` then ends it, if need be.

    Other ranks learn of a rank that a signal has ended, or that exits with 0. With another exit
    code, or before `MPI_Init` is over, they would wait for it for ever.
    """
    return os.environ.get(_FAULT_TOLERANT_VARIABLE) == "1" and END_VARIABLE in os.environ


def note(kind: str, *words: object) -> None:
    """Writes a line for `music-tf launch`, if it started this job."""
    place = os.environ.get(END_VARIABLE)
    if place:
        text = " ".join([kind, *map(str, words)]).replace("\n", " ")
        with contextlib.suppress(OSError), open(place, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def notes_in(path: Path) -> dict[str, list[str]]:
    """Returns what follows the kind of each note, by kind."""
    notes: dict[str, list[str]] = {}
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, _, text = line.partition(" ")
            notes.setdefault(kind, []).append(text)
    return notes
