"""Rewards that own networks and skills one by one, with ranks that only act and after a stop."""

import pytest

from tests.kit import jobs

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]

POINT = """
--env-id music_tf/PointPush-v0 --workers 2 --rollouts 2 --cycles 3 --updates 5
--epochs 4 --agent.hidden-sizes 8 8 --replay.batch-size 16 --evaluation.episodes 2
"""
EMBEDDED = f"{POINT} --distance.hidden-sizes 8 --condition.relabel 0.5 --collect.update-after 0"
DISK = """
sac_disk --workers 2 --skills 3 --incremental.epochs 2 --incremental.collected 3 --cycles 2
--updates 5 --collect.steps 20 --agent.hidden-sizes 8 8 --replay.batch-size 16 --disk.rows 32
--evaluation.episodes 2 --incremental.replay purge
"""
SWITCH = "--task.weight-by moved --task.weight 0.1 0 0.3 1 --music.weight-by moved"
MADE = {
    "a speed that is read off": f"sac_place {POINT} --condition.kind ball --distance.speed auto "
    "--distance.columns 0 1 --collect.update-after 100",
    "active exploration": f"ddpg_cai {POINT} --exploration.random-hold 1 --influence.candidates 4 "
    "--influence.samples 4 --influence.hidden-sizes 8",
    "a switch by moved objects": f"ddpg_her_fast {POINT} --music.trajectories 4 {SWITCH} "
    "--music.weight 0.1 1 0.3 0 --task.weight-episodes 8 --music.weight-episodes 8",
    "an embedding and a density": f"sac_csd {EMBEDDED}",
    "an embedding of time": f"sac_metra {EMBEDDED}",
    "skills by their means": DISK,
    "skills of wide networks": f"{DISK} --evaluation.length 15 --agent.hidden-sizes 256 256",
}
STOPPED = ("a speed that is read off", "skills by their means")


def trained_by(made):  # what gives the words that train in a folder
    return lambda path, *more: ["train", *MADE[made].split(), *more, "--run-dir", str(path)]


@pytest.mark.parametrize("made", MADE)
def test_actors_change_no_bit_of(made, tmp_path):
    jobs.assert_actors_change_no_bit(trained_by(made), tmp_path)


@pytest.mark.parametrize("made", STOPPED)
def test_two_ranks_that_were_stopped_end_with_the_same_bits(made, tmp_path):
    jobs.assert_a_stop_changes_no_bit(trained_by(made), tmp_path)


def test_a_resumed_learner_sends_its_actor_the_skills_of_before(tmp_path):
    alone, acted, once = tmp_path / "alone", tmp_path / "acted", ("--incremental.epochs", "1")
    train = trained_by("skills by their means")
    jobs.run(train(alone, *once), alone, ranks=1, real=True)
    jobs.run(train(acted, *once, "--max-minutes", "1e-9"), acted, ranks=1, real=True)
    jobs.resume(acted, "--learners", "1", "--max-minutes", "60", real=True)
    jobs.assert_same_run(alone, acted)
