"""What the launcher says about this process, read from the environment before MPI is loaded."""

import os

ASKED_VARIABLE = "MUSIC_TF_RANKS"
"""Set by `music-tf launch` to the number of ranks that it asked for."""
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")


def launched_world_size() -> int:
    """Returns how many ranks the launcher says it started; 1 outside a launcher."""
    for name in _SIZE_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    if "SLURM_PROCID" in os.environ and os.environ.get("SLURM_STEP_NUM_TASKS", "").isdigit():
        return int(os.environ["SLURM_STEP_NUM_TASKS"])
    return 1


def asked_world_size() -> int | None:
    """Returns how many ranks `music-tf launch` asked for; None outside of it."""
    asked = os.environ.get(ASKED_VARIABLE, "")
    return int(asked) if asked.isdigit() else None


def launched_rank() -> int:
    """Returns this process's rank as the launcher says it; else 0."""
    for name in _RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    if launched_world_size() > 1:
        return int(os.environ.get("SLURM_PROCID", "0"))
    return 0
