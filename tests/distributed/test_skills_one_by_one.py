"""Skills one after the other on several ranks, and with ranks that only act."""

import signal

import pytest

from tests.kit.jobs import DONE, STOPPED, Job, assert_same_run, resume, run

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WORDS = """
train sac_disk --workers 2 --skills 3 --incremental.epochs 2 --incremental.collected 3 --cycles 2
--updates 5 --collect.steps 20 --agent.hidden-sizes 8 8 --replay.batch-size 16 --disk.rows 32
--evaluation.episodes 2 --incremental.replay purge
"""


def train(path, *more):
    return [*WORDS.split(), *more, "--run-dir", str(path)]


def test_a_run_on_two_ranks_that_was_stopped_ends_with_the_same_bits(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    ended = run(train(whole), whole, real=True)
    assert ended.code == DONE, ended.err
    with Job(train(cut), cut, real=True) as job:
        job.wait_for_epoch(1)
        job.send(signal.SIGUSR1)
        assert job.end().code == STOPPED
    ended = resume(cut, real=True)
    assert ended.code == DONE, ended.err
    assert_same_run(whole, cut)


def test_actors_change_no_bit_of_skills_one_after_the_other(tmp_path):
    alone, acted = tmp_path / "alone", tmp_path / "acted"
    for path, ranks, more in ((alone, 1, ()), (acted, 2, ("--learners", "1"))):
        ended = run(train(path, *more), path, ranks=ranks, real=True)
        assert ended.code == DONE, ended.err
    assert_same_run(alone, acted)
