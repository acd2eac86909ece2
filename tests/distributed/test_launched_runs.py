import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.distributed.jobs import environment
from tests.kit.saved_run import load_weights

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WORDS = """
train ddpg_music --env-id music_tf/PointPush-v0 --epochs 12 --cycles 4 --updates 3 --workers 2
--rollouts 1 --agent.hidden-sizes 16 16 --music.trajectories 8 --replay.batch-size 16
--evaluation.episodes 4 --evaluation.every 12
"""
RUN = tuple(WORDS.split())
LIMIT = 240.0
STOPPED = 75


def launch(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "music_tf", "launch", "-n", "2", *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        raise
    return process.returncode, out, err


def rows_of(path):
    with (path / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def wait_for_rows(path, count):
    """Waits until an epoch or more are done, in the middle of the run."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if (path / "metrics.csv").exists() and len(rows_of(path)) >= count:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{path} has no {count} epochs")


def without_times(rows):
    return [
        {
            k: v
            for k, v in row.items()
            if not k.startswith(("time/fps", "time/elapsed", "mpi/"))
            and k != "time/updates_per_second"
        }
        for row in rows
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("launched") / "run"
    code, out, err = finish(launch(*RUN, "--run-dir", path))
    assert code == 0, err
    return path, out


def test_a_launched_run_leaves_everything(whole):
    path, out = whole
    config = json.loads((path / "config.json").read_text())
    assert (config["recipe"], config["config"]["workers"]) == ("ddpg_music", 2)
    rows = rows_of(path)
    assert [row["epoch"] for row in rows] == [str(epoch) for epoch in range(1, 13)]
    # 12 epochs of 4 cycles: 2 workers, one episode of 30 steps each, 3 updates
    assert (rows[-1]["time/env_steps"], rows[-1]["time/updates"]) == ("2880", "144")
    assert len(list(path.glob("events.out.tfevents.*"))) == 1
    assert (path / "checkpoints/epoch_000012/manifest.json").is_file()
    assert {entry.name for entry in (path / "checkpoints/replay").iterdir()} == {
        "worker_0000",
        "worker_0001",
    }
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["ranks"], summary["epochs"], summary["env_steps"]) == (2, 12, 2880)
    assert "music/bound_heldout" in summary["metrics"]
    assert {entry.name for entry in (path / "logs").iterdir()} >= {
        "rank_0000.log",
        "rank_0001.log",
    }
    assert out.count("workers 2 on 2 ranks") == 1


def test_a_run_that_sigusr1_stopped_ends_bit_equal_to_one_that_went_through(whole, tmp_path):
    reference, _ = whole
    path = tmp_path / "run"
    process = launch(*RUN, "--run-dir", path)
    wait_for_rows(path, 2)
    process.send_signal(signal.SIGUSR1)
    code, _, err = finish(process)
    assert code == STOPPED, err
    assert err.count("stopped and saved after") == 1
    assert "Traceback" not in err
    stopped_after = len(rows_of(path))
    assert 2 <= stopped_after < 12
    assert not (path / "summary.json").exists()

    code, _, err = finish(launch("train", "--run-dir", path, "--resume"))
    assert code == 0, err
    arrays, meta = load_weights(path / "checkpoints")
    expected, expected_meta = load_weights(reference / "checkpoints")
    np.testing.assert_equal(arrays, expected)
    assert any(name.startswith("adam_second/statistics/") for name in arrays)
    for name in ("epoch", "cycle", "env_steps", "updates"):
        assert meta["counters"][name] == expected_meta["counters"][name]
    assert without_times(rows_of(path)) == without_times(rows_of(reference))
