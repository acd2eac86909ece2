import os
import stat

import pytest

from music_tf.reading.command import parse_train
from tests.kit.started import ROOT, ended

FOLDER = "experiments/slurm"


@pytest.fixture
def cluster(tmp_path):
    """A folder with stand-ins for srun and scontrol that note how they were called."""
    for name in ("srun", "scontrol"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\nexit "${{{name}_code:-0}}"\n')
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


def submit(cluster, code=0, script="train.sbatch", more=("--epochs", "3")):
    path = f"{cluster}:{os.environ['PATH']}"
    calls = cluster / "calls"
    calls.unlink(missing_ok=True)
    found = {"PATH": path, "CALLS": str(calls), "srun_code": str(code), "SLURM_JOB_ID": "7"}
    done = ended("bash", f"{FOLDER}/{script}", "ddpg_her", *more, cwd=cluster, env=found)
    assert done.returncode == code
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


def test_a_learner_on_a_gpu_has_actors_beside_it_and_what_the_user_says_wins(cluster):
    calls = submit(cluster, code=75, script="learner.sbatch", more=("--workers", "32"))
    learner = "--workers 16 --learners 1 --lag 1 --device gpu --workers 32 --run-dir runs/slurm-7"
    assert calls == [f"{TRAIN}{learner}", "scontrol requeue 7"]
    train = parse_train(calls[0].split()[6:])
    assert (train.config.workers, train.learners, train.config.lag) == (32, 1, 1)
