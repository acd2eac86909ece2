import os
import stat

import pytest

from tests.kit.started import ROOT, ended


@pytest.fixture
def cluster(tmp_path):
    """A folder with stand-ins for srun and scontrol that note how they were called."""
    for name in ("srun", "scontrol"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\nexit "${{{name}_code:-0}}"\n')
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


def submit(cluster, code=0):
    path = f"{cluster}:{os.environ['PATH']}"
    calls = cluster / "calls"
    calls.unlink(missing_ok=True)
    found = {"PATH": path, "CALLS": str(calls), "srun_code": str(code), "SLURM_JOB_ID": "7"}
    words = ("bash", "experiments/slurm/train.sbatch", "ddpg_her", "--epochs", "3")
    ended(*words, cwd=cluster, env=found, exits=code)
    return calls.read_text().splitlines()


TRAIN = "srun --mpi=pmix .venv/bin/python -m mpi4py experiments/train.py ddpg_her "


def test_a_job_resumes_and_is_requeued_where_it_was_interrupted_or_hung(cluster):
    train = f"{TRAIN}--epochs 3 --run-dir runs/slurm-7"
    assert submit(cluster) == [train]
    assert submit(cluster, code=1) == [train]  # a failure is final
    assert submit(cluster, code=75) == [train, "scontrol requeue 7"]
    (cluster / "runs/slurm-7").mkdir(parents=True, exist_ok=True)
    (cluster / "runs/slurm-7/config.json").write_text("{}")
    resume = f"{train} --resume"
    assert submit(cluster) == [resume]
    hung = [submit(cluster, code=86) for _ in range(4)]
    assert hung == [[resume, "scontrol requeue 7"]] * 3 + [[resume]]
