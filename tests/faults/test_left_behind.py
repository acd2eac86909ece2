import os
import re
import signal
import socket

import pytest

from tests.kit.jobs import (
    DONE,
    ENDLESS,
    EPOCHS,
    STOPPED,
    USAGE,
    Job,
    assert_same_run,
    processes_of,
    resume,
    rows_of,
    run,
    train,
    until,
)

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]


def test_a_second_job_is_refused_and_a_dead_one_succeeded(tmp_path):  # F21
    path = tmp_path / "run"
    with Job(train(path, *ENDLESS), path) as first:
        first.wait_for_epoch(1)
        second = tmp_path / "second"
        with Job(["train", "--run-dir", str(path), "--resume"], second) as job:
            code = job.process.wait(timeout=60)
        text = second.with_suffix(".err").read_text()
        assert code == USAGE, text
        assert int(re.search(r"in use by process (\d+) on host", text)[1]) in first.rank_pids()
        assert socket.gethostname() in text
        first.send(signal.SIGUSR1)
        assert first.end().code == STOPPED

    with Job(["train", "--run-dir", str(path), "--resume"], path) as third:
        lock = path / "lock.json"
        third.wait_for_ranks()
        until(lock.exists, "the run directory is not locked")
        for pid in processes_of(path):
            os.kill(pid, signal.SIGKILL)
        third.end()
    assert lock.exists()
    ended = resume(path, "--epochs", len(rows_of(path)) + 1)
    assert ended.code == DONE, ended.err
    assert not lock.exists()


@pytest.mark.parametrize("jump", ["tomorrow", "yesterday"])
def test_a_clock_that_jumps_by_a_day_changes_nothing(tmp_path, whole, jump):  # F21
    path = tmp_path / "run"
    words = train(path, "--epochs", EPOCHS, "--max-minutes", 30)
    ended = run(words, path, fault={"phase": "update", "how": jump, "after": 5})
    assert ended.code == DONE, ended.err
    assert_same_run(path, whole)
