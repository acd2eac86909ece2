"""Starts programs under mpirun, as a user would, with a time limit."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from music_tf.cli.mpirun import own_sessions

REPOSITORY = Path(__file__).resolve().parents[2]
MPIRUN = Path(sys.executable).parent / "mpirun"


def environment():
    if not MPIRUN.exists():
        pytest.skip("no mpirun beside this Python")
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def mpirun(ranks, *program, limit=400):
    """Runs `python -m mpi4py PROGRAM` on ranks; returns the finished job and its seconds."""
    options = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", str(ranks)]
    start = time.monotonic()
    with own_sessions(os.environ) as sessions:
        job = subprocess.run(
            [str(MPIRUN), *options, sys.executable, "-m", "mpi4py", *map(str, program)],
            env={**environment(), **sessions},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    return job, time.monotonic() - start
