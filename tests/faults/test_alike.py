import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import music_tf
from tests.kit import jobs

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]
RANK = (sys.executable, "-m", "mpi4py", "-m", "music_tf")
roles = pytest.mark.parametrize("learners", [0, 1], ids=["an equal rank", "an actor"])


def with_other_second_rank(code, path, learners, *command):
    """Starts rank 0 as always and rank 1 by another command; the job ends with a code."""
    topology = ["--learners", str(learners)]
    words = [*jobs.train(path), *topology, ":", "-n", "1", *map(str, command), *topology]
    return jobs.run(words, path, code=code, ranks=1, how="mpirun")


def replay_of(path):
    return {
        name: digest
        for name, digest in jobs.digests(path / "checkpoints/replay").items()
        if name.endswith(".npz")
    }


def test_a_seed_fixes_a_run_and_another_seed_changes_it_on_every_rank(tmp_path, whole):  # F13
    again, other = tmp_path / "again", tmp_path / "other"
    jobs.run(jobs.train(again, "--epochs", jobs.EPOCHS), again)
    jobs.assert_same_run(again, whole)
    np.testing.assert_equal(replay_of(again), replay_of(whole))
    jobs.run(jobs.train(other, "--epochs", jobs.EPOCHS, "--seed", 1), other)
    assert jobs.rows_of(other) != jobs.rows_of(whole)
    ours, theirs = replay_of(other), replay_of(whole)
    assert ours.keys() == theirs.keys()
    assert {name.split("/")[0] for name in ours} == {f"worker_000{n}" for n in range(4)}
    assert [name for name in ours if ours[name] == theirs[name]] == []


@pytest.mark.parametrize(("learners", "rank"), [(0, 2), (2, 1)], ids=["alike", "learners"])
def test_one_weight_apart_by_its_last_bit_ends_the_run(tmp_path, learners, rank):  # F14
    path = tmp_path / "run"
    fault = {"phase": "update", "how": "ulp", "rank": rank, "after": 3}
    words = jobs.train(path, "--epochs", 50, "--updates", 25, "--learners", learners)
    ended = jobs.run(words, path, code=jobs.NUMBERS, ranks=4, fault=fault)
    # the fourth cycle of 25 updates is the second epoch's last: rows end with the first
    assert f"100 updates: actor/kernel on ranks [{rank}] is not what rank 0 holds" in ended.err
    assert "back to the checkpoint of epoch 1" in ended.err
    assert "Traceback" not in ended.err
    assert len(jobs.rows_of(path)) == 1


@roles
def test_a_rank_with_other_settings_is_refused_at_the_start(tmp_path, learners):  # F14
    path = tmp_path / "run"
    other = jobs.train(path, "--seed", 7, "--agent.polyak", 0.5)
    ended = with_other_second_rank(jobs.USAGE, path, learners, *RANK, *other)
    assert "seed: rank 0 has 0, rank 1 has 7" in ended.err
    assert "agent.polyak: rank 0 has 0.98, rank 1 has 0.5" in ended.err
    assert ended.err.count("music-tf:") == 1
    assert not (path / "config.json").exists()


@roles
def test_a_command_line_that_one_rank_refuses_is_reported_once(tmp_path, learners):
    path, unseen = tmp_path / "run", tmp_path / "unseen"
    other = ("train", "--run-dir", unseen, "--resume")
    ended = with_other_second_rank(jobs.USAGE, path, learners, *RANK, *other)
    assert ended.err.startswith(f"music-tf: rank 1: {unseen}: expected a run directory")
    assert len(ended.err.splitlines()) == 1
    assert not path.exists()


@roles
def test_a_rank_with_other_code_is_refused_at_the_start(tmp_path, learners):  # F14
    path, copy = tmp_path / "run", tmp_path / "copy"
    shutil.copytree(Path(music_tf.__file__).parent, copy / "music_tf")
    with (copy / "music_tf/rollout.py").open("a") as file:
        file.write("\n# another version\n")
    search = f"PYTHONPATH={copy}:{jobs.environment()['PYTHONPATH']}"
    other = ("env", search, *RANK, *jobs.train(path))
    ended = with_other_second_rank(jobs.ENVIRONMENT, path, learners, *other)
    assert "code of music_tf: rank 0 has" in ended.err
    assert ended.err.count("music-tf:") == 1
