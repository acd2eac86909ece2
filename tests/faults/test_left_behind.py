import os
import re
import signal
import socket

import pytest

from tests.kit import jobs

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]


def test_a_second_job_is_refused_and_a_dead_one_succeeded(tmp_path):  # F21
    path = tmp_path / "run"
    with jobs.Job(jobs.train(path, *jobs.ENDLESS), path) as first:
        first.wait_for_epoch(1)
        second = tmp_path / "second"
        with jobs.Job(["train", "--run-dir", str(path), "--resume"], second) as job:
            code = job.process.wait(timeout=60)
        text = second.with_suffix(".err").read_text()
        assert code == jobs.USAGE, text
        assert int(re.search(r"in use by process (\d+) on host", text)[1]) in first.rank_pids()
        assert socket.gethostname() in text
        first.send(signal.SIGUSR1)
        first.end(code=jobs.STOPPED)

    with jobs.Job(["train", "--run-dir", str(path), "--resume"], path) as third:
        lock = path / "lock.json"
        third.wait_for_ranks()
        jobs.until(lock.exists, "the run directory is not locked")
        for pid in jobs.processes_of(path):
            os.kill(pid, signal.SIGKILL)
        third.end()
    assert lock.exists()
    jobs.resume(path, "--epochs", len(jobs.rows_of(path)) + 1)
    assert not lock.exists()


@pytest.mark.parametrize("jump", ["tomorrow", "yesterday"])
def test_a_clock_that_jumps_by_a_day_changes_nothing(tmp_path, whole, jump):  # F21
    path = tmp_path / "run"
    words = jobs.train(path, "--epochs", jobs.EPOCHS, "--max-minutes", 30)
    jobs.run(words, path, fault={"phase": "update", "how": jump, "after": 5})
    jobs.assert_same_run(path, whole)
