"""Rewards that own networks, with ranks that only act and on several ranks that were stopped."""

import signal

import pytest

from tests.kit.jobs import DONE, STOPPED, Job, assert_same_run, resume, run

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

WORDS = """
train {recipe} --env-id music_tf/PointPush-v0 --workers 2 --rollouts 2 --cycles 3 --updates 5
--epochs 4 --agent.hidden-sizes 8 8 --replay.batch-size 16 --evaluation.episodes 2
"""
EXPLORING = """
ddpg_cai --exploration.random-hold 1 --influence.candidates 4 --influence.samples 4
--influence.hidden-sizes 8
"""
EMBEDDED = """
{name} --distance.hidden-sizes 8 --condition.relabel 0.5 --collect.update-after 0
"""
MADE = {
    "active exploration": EXPLORING,
    "an embedding and a density": EMBEDDED.format(name="sac_csd"),
    "an embedding of time": EMBEDDED.format(name="sac_metra"),
}


def train(made, path, *more):
    recipe, *options = MADE[made].split()
    return [*WORDS.format(recipe=recipe).split(), *options, *more, "--run-dir", str(path)]


@pytest.mark.parametrize("made", sorted(MADE))
def test_actors_change_no_bit_of(made, tmp_path):
    alone, acted = tmp_path / "alone", tmp_path / "acted"
    for path, ranks, more in ((alone, 1, ()), (acted, 2, ("--learners", "1"))):
        ended = run(train(made, path, *more), path, ranks=ranks, real=True)
        assert ended.code == DONE, ended.err
    assert_same_run(alone, acted)


def test_active_exploration_on_two_ranks_that_was_stopped_ends_with_the_same_bits(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    ended = run(train("active exploration", whole), whole, real=True)
    assert ended.code == DONE, ended.err
    with Job(train("active exploration", cut), cut, real=True) as job:
        job.wait_for_epoch(1)
        job.send(signal.SIGUSR1)
        assert job.end().code == STOPPED
    ended = resume(cut, real=True)
    assert ended.code == DONE, ended.err
    assert_same_run(whole, cut)
