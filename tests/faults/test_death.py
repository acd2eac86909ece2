import os
import re
import signal
import time

import numpy as np
import pytest

from tests.faults.trials import disturb, finish_and_compare, kill_a_rank, starting_seconds
from tests.kit.cases import cases
from tests.kit.jobs import BUG, ENDLESS, HANGING, Job, rows_of, train, until

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(600)]
KILLS = 10


def test_kills_at_random_times_cost_an_epoch_at_most_and_leave_nothing_behind(tmp_path):  # F1
    generator = np.random.default_rng(4)
    path = tmp_path / "run"
    for moment_s in generator.uniform(0.0, 2.0 * starting_seconds(tmp_path / "start", 4), KILLS):
        trial = disturb(path, 4, float(moment_s), kill_a_rank(generator))
        assert trial.survived, trial.note
    finish_and_compare(path, tmp_path / "reference", 4)


@cases(
    ("phase", "rank", "after"),
    ("import", 1, 0),
    ("make", 0, 0),
    ("rollout", 1, 3),
    ("update", 0, 3),
    ("eval", 1, 1),
    ("save", 0, 1),
    ("log", 1, 1),
)
def test_an_exception_on_one_rank_ends_the_job_with_its_line_and_one_traceback(  # F2
    tmp_path, phase, rank, after
):
    path, mark = tmp_path / "run", tmp_path / "struck"
    fault = {"phase": phase, "how": "raise", "rank": rank, "after": after, "mark": str(mark)}
    with Job(train(path, *ENDLESS), path, fault=fault) as job:
        until(mark.exists, "the fault does not strike")
        ended = job.end(code=BUG)
    assert ended.seconds < 10.0
    line = "RuntimeError: a fault was injected at stub.py:"
    if phase in ("import", "make"):  # no run is open
        assert f"[rank {rank}] music-tf: {line}" in ended.err
        assert f"[rank {rank}] Traceback" in ended.err
        assert ended.err.count("Traceback") == 1
        return
    assert ended.err.count(f"music-tf: rank {rank}: {line}") == 1
    assert "Traceback" not in ended.err
    assert "Traceback" in (path / f"logs/rank_{rank:04d}.log").read_text()


def test_a_rank_that_hangs_ends_the_job_with_the_stacks_of_all_others(tmp_path):  # F4
    path = tmp_path / "run"
    saves_take_longer = ("--checkpoint-every", "1000000")
    with Job(train(path, *ENDLESS, *saves_take_longer, "--hang-after", 5), path, ranks=4) as job:
        job.wait_for_epoch(1)
        os.kill(job.rank_pids()[2], signal.SIGSTOP)
        start = time.monotonic()
        ended = job.end(code=HANGING)
    assert time.monotonic() - start < 15.0
    spoke = re.findall(r"music-tf: rank (\d): no progress for", ended.err)
    assert len(spoke) == len(set(spoke)) == 3
    assert "most recent call first" in ended.err
    assert len([log for log in (path / "logs").iterdir() if "no progress" in log.read_text()]) == 3
    assert rows_of(path)
