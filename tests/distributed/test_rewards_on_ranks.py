"""Rewards that own networks, with ranks that only act and on several ranks that were stopped."""

import pytest

from tests.kit.jobs import assert_a_stop_changes_no_bit, assert_actors_change_no_bit

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
AT_SPEEDS = """
sac_place --condition.kind ball --distance.speed auto --distance.columns 0 1
--collect.update-after 100
"""
MADE = {
    "a speed that is read off": AT_SPEEDS,
    "active exploration": EXPLORING,
    "an embedding and a density": EMBEDDED.format(name="sac_csd"),
    "an embedding of time": EMBEDDED.format(name="sac_metra"),
}


def trained_by(made):  # what gives the words that train in a folder
    recipe, *options = MADE[made].split()
    words = [*WORDS.format(recipe=recipe).split(), *options]
    return lambda path, *more: [*words, *more, "--run-dir", str(path)]


@pytest.mark.parametrize("made", sorted(MADE))
def test_actors_change_no_bit_of(made, tmp_path):
    assert_actors_change_no_bit(trained_by(made), tmp_path)


@pytest.mark.parametrize("made", ["a speed that is read off", "active exploration"])
def test_two_ranks_that_were_stopped_end_with_the_same_bits(made, tmp_path):
    assert_a_stop_changes_no_bit(trained_by(made), tmp_path)
