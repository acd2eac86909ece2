"""Skills one after the other on several ranks, and with ranks that only act."""

import pytest

from tests.kit.jobs import (
    DONE,
    assert_a_stop_changes_no_bit,
    assert_actors_change_no_bit,
    assert_same_run,
    resume,
    run,
)

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WORDS = """
train sac_disk --workers 2 --skills 3 --incremental.epochs 2 --incremental.collected 3 --cycles 2
--updates 5 --collect.steps 20 --agent.hidden-sizes 8 8 --replay.batch-size 16 --disk.rows 32
--evaluation.episodes 2 --incremental.replay purge
"""


def train(path, *more):
    return [*WORDS.split(), *more, "--run-dir", str(path)]


def test_a_run_on_two_ranks_that_was_stopped_ends_with_the_same_bits(tmp_path):
    assert_a_stop_changes_no_bit(train, tmp_path)


@pytest.mark.parametrize(
    "more",
    ["", "--incremental.collect-sampled True --evaluation.length 15 --agent.hidden-sizes 256 256"],
    ids=["means", "samples"],
)
def test_actors_change_no_bit_of_skills_one_after_the_other(more, tmp_path):
    assert_actors_change_no_bit(lambda path, *given: train(path, *more.split(), *given), tmp_path)


def test_a_resumed_learner_sends_its_actor_the_skills_of_before(tmp_path):
    alone, acted, once = tmp_path / "alone", tmp_path / "acted", ("--incremental.epochs", "1")
    ended = run(train(alone, *once), alone, ranks=1, real=True)
    assert ended.code == DONE, ended.err
    first = run(train(acted, *once, "--max-minutes", "1e-9"), acted, ranks=1, real=True)
    assert first.code == DONE, first.err
    ended = resume(acted, "--learners", "1", "--max-minutes", "60", real=True)
    assert ended.code == DONE, ended.err
    assert_same_run(alone, acted)
