import pytest

from tests.kit.cases import cases
from tests.kit.jobs import DONE, ENVIRONMENT, HANGING, rows_of, run, state_of, train

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(300)]


def with_faulty(code, tmp_path, way, *more):
    path = tmp_path / "run"
    words = train(path, "--env-id", f"tests.faults.faulty:Faulty/{way}-v0", "--epochs", 2, *more)
    return path, run(words, path, code=code)


@cases(
    ("way", "text"),
    ("raises", "RuntimeError: the motor burns"),
    ("shape", "achieved_goal: expected shape (3,), got shape (2,)"),
    ("missing", "desired_goal"),
)
def test_an_environment_that_stays_broken_ends_the_run_after_four_tries(  # F16
    tmp_path, way, text
):
    _, ended = with_faulty(ENVIRONMENT, tmp_path, way)
    assert "4 tries at one episode failed" in ended.err
    assert "step 3" in ended.err
    assert text in ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("music-tf:") == 1


@cases(
    ("way", "steps"),
    ("raises-once", ["80", "160"]),  # recovers, and costs an episode
    ("nan-once", ["80", "160"]),
    ("one-step", ["8", "16"]),  # episodes of one step are learned from
)
def test_what_an_environment_may_do_leaves_a_whole_run(tmp_path, way, steps):  # F16
    path, _ = with_faulty(DONE, tmp_path, way)
    assert [row["time/env_steps"] for row in rows_of(path)] == steps
    assert state_of(path)[1]["counters"]["epoch"] == 2


def test_an_environment_that_hangs_is_ended_by_the_watchdog(tmp_path):  # F16
    _, ended = with_faulty(HANGING, tmp_path, "hangs", "--hang-after", 2)
    assert "in _go_wrong" in ended.err
