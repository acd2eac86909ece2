"""Starts processes that use one package or the other."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

_RUNNER = pathlib.Path(__file__).with_name("runner.py")


def run_job(package, steps, results, ranks=1):
    """Runs command lines of a package in one process a rank; what they say lies in `results`."""
    words = [sys.executable]
    if ranks > 1:
        beside = pathlib.Path(sys.executable).parent / "mpirun"
        mpirun = str(beside) if beside.exists() else "mpirun"
        spread = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", str(ranks)]
        words = [mpirun, *spread, sys.executable, "-m", "mpi4py"]
    with tempfile.TemporaryDirectory(prefix="same-") as temporary:
        job = pathlib.Path(temporary, "job.json")
        job.write_text(json.dumps(steps))
        with open(results / "job.log", "w") as log:
            subprocess.run(
                [*words, str(_RUNNER), str(package), str(job), str(results)],
                cwd=temporary,
                env=environment(package, temporary) | {"SAME_RANKS": str(ranks)},
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


def environment(package, temporary):
    ours = {
        "PYTHONPATH": str(package),
        "MUSIC_TF_RUNS": str(pathlib.Path(temporary, "runs")),
        "TMPDIR": str(temporary),
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    return os.environ | ours
