import signal
import time

import pytest

from tests.kit.jobs import (
    DONE,
    EPOCHS,
    STOPPED,
    Job,
    assert_same_run,
    resume,
    rows_of,
    state_of,
    train,
    until,
)

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]


def continue_to_the_end_of(whole, path, **how):
    ended = resume(path, **how)
    assert ended.code == DONE, ended.err
    assert_same_run(path, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_the_launcher_saves_and_the_run_goes_on_to_the_same_end(  # F6
    tmp_path, whole, number
):
    path = tmp_path / "run"
    with Job(train(path, "--epochs", EPOCHS), path) as job:
        job.wait_for_epoch(2)
        job.send(number)
        ended = job.end()
    assert ended.code == STOPPED, ended.err
    assert ended.err.count("stopped and saved after") == 1
    assert "Traceback" not in ended.err
    saved = state_of(path)[1]["counters"]["epoch"]
    assert 2 <= saved == len(rows_of(path)) < EPOCHS
    continue_to_the_end_of(whole, path)


def test_a_signal_while_the_ranks_start_is_not_lost(tmp_path, whole):  # F5
    path = tmp_path / "run"
    with Job(train(path, "--epochs", EPOCHS), path) as job:
        time.sleep(0.4)
        job.send(signal.SIGUSR1)
        ended = job.end()
    assert ended.code == STOPPED, ended.err
    assert len(rows_of(path)) <= 1
    if (path / "config.json").exists():
        continue_to_the_end_of(whole, path)


def test_sigterm_at_mpirun_itself_leaves_the_last_checkpoint_intact(tmp_path, whole):  # F6
    path = tmp_path / "run"
    with Job(train(path, "--epochs", EPOCHS), path, how="mpirun") as job:
        job.wait_for_epoch(2)
        job.send(signal.SIGTERM)
        ended = job.end()
    assert ended.code != DONE
    assert ended.seconds < 5.0
    assert len(rows_of(path)) - state_of(path)[1]["counters"]["epoch"] in (0, 1)
    continue_to_the_end_of(whole, path)


@pytest.mark.parametrize(("how", "reference"), [("launch", "whole"), ("alone", "whole_alone")])
def test_a_second_ctrl_c_ends_at_once_what_the_first_would_have_saved(  # F25
    tmp_path, request, how, reference
):
    path, mark = tmp_path / "run", tmp_path / "saving"
    fault = {"phase": "write", "how": "linger", "rank": 0, "after": 2, "mark": str(mark)}
    with Job(train(path, "--epochs", EPOCHS), path, how=how, fault=fault) as job:
        until(mark.exists, "nothing is saved")
        job.send(signal.SIGINT)
        time.sleep(0.3)
        job.send(signal.SIGINT)
        ended = job.end()
    assert ended.code == STOPPED, ended.err
    assert ended.seconds < 2.0
    assert "Traceback" not in ended.err
    assert state_of(path)[1]["counters"]["epoch"] == 2
    continue_to_the_end_of(request.getfixturevalue(reference), path, how=how)


def test_one_ctrl_c_during_a_save_lets_it_finish(tmp_path, whole_alone):  # F25
    path, mark = tmp_path / "run", tmp_path / "saving"
    fault = {"phase": "write", "how": "linger", "rank": 0, "after": 2, "mark": str(mark)}
    with Job(train(path, "--epochs", EPOCHS), path, how="alone", fault=fault) as job:
        until(mark.exists, "nothing is saved")
        job.send(signal.SIGINT)
        ended = job.end()
    assert ended.code == STOPPED, ended.err
    assert 2.0 < ended.seconds < 8.0  # a save takes 3 s here, and nothing is saved twice
    assert sorted(entry.name for entry in (path / "checkpoints").glob("epoch_*"))[-1] == (
        "epoch_000003"
    )
    continue_to_the_end_of(whole_alone, path, how="alone")
