import os
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "experiments/slurm/train.sbatch"


@pytest.fixture
def cluster(tmp_path):
    """A folder with stand-ins for srun and scontrol that note how they were called."""
    for name in ("srun", "scontrol"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\nexit "${{{name}_code:-0}}"\n')
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
    return tmp_path


def submit(cluster, code=0):
    path = f"{cluster}:{os.environ['PATH']}"
    calls = cluster / "calls"
    calls.unlink(missing_ok=True)
    done = subprocess.run(
        ["bash", str(SCRIPT), "ddpg_her", "--epochs", "3"],
        cwd=cluster,
        env={"PATH": path, "CALLS": str(calls), "srun_code": str(code), "SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, calls.read_text().splitlines()


def test_a_job_trains_in_a_directory_of_its_own(cluster):
    code, calls = submit(cluster)
    assert code == 0
    assert calls == [
        "srun --mpi=pmix .venv/bin/python -m mpi4py experiments/train.py "
        "ddpg_her --epochs 3 --run-dir runs/slurm-7"
    ]


def test_a_job_that_was_cut_off_is_queued_again_and_resumes(cluster):
    code, calls = submit(cluster, code=75)
    assert code == 75
    assert calls[-1] == "scontrol requeue 7"
    (cluster / "runs/slurm-7").mkdir(parents=True)
    (cluster / "runs/slurm-7/config.json").write_text("{}")
    _, calls = submit(cluster)
    assert calls == [
        "srun --mpi=pmix .venv/bin/python -m mpi4py experiments/train.py "
        "ddpg_her --epochs 3 --run-dir runs/slurm-7 --resume"
    ]


def test_a_job_that_lost_a_host_or_stood_still_is_queued_again_three_times(cluster):
    found = [submit(cluster, code=86) for _ in range(4)]
    assert [code for code, _ in found] == [86] * 4
    assert [calls[-1] == "scontrol requeue 7" for _, calls in found] == [True] * 3 + [False]


def test_a_job_that_failed_is_not_queued_again(cluster):
    code, calls = submit(cluster, code=1)
    assert code == 1
    assert len(calls) == 1
