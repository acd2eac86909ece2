import signal
import time

import pytest

from tests.kit import jobs
from tests.kit.cases import cases

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]


def continue_to_the_end_of(whole, path, **how):
    jobs.resume(path, **how)
    jobs.assert_same_run(path, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_the_launcher_saves_and_the_run_goes_on_to_the_same_end(  # F6
    tmp_path, whole, number
):
    path = tmp_path / "run"
    with jobs.Job(jobs.train(path, "--epochs", jobs.EPOCHS), path) as job:
        ended = job.stop_after(2, number)
    assert ended.err.count("stopped and saved after") == 1
    assert ended.err.endswith(f"\nmusic-tf launch -n 2 train --run-dir {path} --resume\n")
    assert "Traceback" not in ended.err
    assert 2 <= jobs.state_of(path)[1]["counters"]["epoch"] == len(jobs.rows_of(path)) < jobs.EPOCHS
    continue_to_the_end_of(whole, path)


def test_a_signal_while_the_ranks_start_is_not_lost(tmp_path, whole):  # F5
    path = tmp_path / "run"
    with jobs.Job(jobs.train(path, "--epochs", jobs.EPOCHS), path) as job:
        time.sleep(0.4)
        job.send(signal.SIGUSR1)
        job.end(code=jobs.STOPPED)
    assert len(jobs.rows_of(path)) <= 1
    if (path / "config.json").exists():
        continue_to_the_end_of(whole, path)


def test_sigterm_at_mpirun_itself_leaves_the_last_checkpoint_intact(tmp_path, whole):  # F6
    path = tmp_path / "run"
    with jobs.Job(jobs.train(path, "--epochs", jobs.EPOCHS), path, how="mpirun") as job:
        job.wait_for_epoch(2)
        job.send(signal.SIGTERM)
        ended = job.end()
    assert ended.code != jobs.DONE
    assert ended.seconds < 5.0
    assert len(jobs.rows_of(path)) - jobs.state_of(path)[1]["counters"]["epoch"] in (0, 1)
    continue_to_the_end_of(whole, path)


@cases(
    ("how", "reference", "strokes"),
    ("launch", "whole", 2),
    ("alone", "whole_alone", 2),
    ("alone", "whole_alone", 1),
)
def test_one_ctrl_c_lets_a_save_finish_and_a_second_one_ends_at_once(  # F25
    tmp_path, request, how, reference, strokes
):
    path, mark = tmp_path / "run", tmp_path / "saving"
    fault = {"phase": "write", "how": "linger", "rank": 0, "after": 2, "mark": str(mark)}
    with jobs.Job(jobs.train(path, "--epochs", jobs.EPOCHS), path, how=how, fault=fault) as job:
        jobs.until(mark.exists, "nothing is saved")
        for _ in range(strokes):
            job.send(signal.SIGINT)
            time.sleep(0.3)
        ended = job.end(code=jobs.STOPPED)
    assert "Traceback" not in ended.err
    if strokes == 1:
        assert 1.7 < ended.seconds < 8.0  # a save takes 3 s here, and nothing is saved twice
    else:
        assert ended.seconds < 2.0
        assert (
            ended.err.count("music-tf: ended at once; to resume from the last checkpoint:\n") == 1
        )
        verb = "train ddpg_her" if how == "alone" else "train"
        assert ended.err.endswith(f"{verb} --run-dir {path} --resume\n")
    assert jobs.state_of(path)[1]["counters"]["epoch"] == (3 if strokes == 1 else 2)
    continue_to_the_end_of(request.getfixturevalue(reference), path, how=how)
