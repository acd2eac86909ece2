"""Weights that follow what the robot does: by hand, in runs, on ranks, saved and resumed."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.config.terms import TaskConfig
from music_tf.envs.registry import EnvironmentInfo, Support, lookup
from music_tf.errors import UsageError
from music_tf.training.levels import WeightLevels
from tests.kit import small
from tests.kit.cases import cases
from tests.kit.ranks import Beside

OBJECT = (0, 1, 2)
INFO = EnvironmentInfo(
    object=OBJECT,
    gripper=(3, 4, 5),
    support=Support(low=(-1.0, -1.0), high=(1.0, 1.0), rest_height=0.0),
)
TASK = TaskConfig(weight_by="moved", weight_episodes=4, weight=((0.5, 0.0), (1.0, 1.0)))
LIFTS = dataclasses.replace(
    small.SMALL_MUSIC, weight_by="lifted", weight_episodes=2, weight=((0.5, 0.25), (1.0, 0.0))
)
CONFIG = small.paying(small.BASE, TASK, LIFTS)
STEPS = 12


def played(moved, lifted):
    """Episodes that moved the object by 6 or 4 cm, or held it up for 10 steps or 9."""
    observation = np.zeros([len(moved), STEPS + 1, 6], np.float32)
    observation[:, -1, 0] = np.where(moved, 0.06, 0.04)
    for row, up in zip(observation, lifted, strict=True):
        row[1 : 11 if up else 10, [2, 5]] = 0.06
    return SimpleNamespace(observation=observation, length=np.full(len(moved), STEPS))


def run_of(epoch=0, comm=None):  # what the levels use of a trainer
    counters, comm = SimpleNamespace(epoch=epoch), comm or Beside()
    return SimpleNamespace(comm=comm, counters=counters, envs=SimpleNamespace(info=INFO))


def test_a_level_is_the_highest_share_of_the_last_episodes_after_a_cycle():
    levels = WeightLevels(CONFIG, INFO)
    for moved, lifted, of_task, of_music in (
        ([1, 0], [0, 0], 1 / 4, 0.0),  # two of the four are still to come
        ([1, 1], [0, 1], 3 / 4, 1 / 2),
        ([0, 0], [0, 0], 3 / 4, 1 / 2),  # 2 of 4 now
        ([1, 1], [1, 1], 3 / 4, 1.0),  # 2 of 4: the first two are forgotten
        ([1, 1], [0, 0], 1.0, 1.0),
    ):
        saved, levels = levels.shared(), WeightLevels(CONFIG, INFO)
        levels.load(saved, {})  # as if the run had been resumed
        levels.take_in(run_of(), {0: played(moved, lifted)}, 0)
        assert levels.now == {"task": of_task, "music": of_music}


def test_episodes_count_in_the_order_of_their_workers_on_any_ranks():
    # by worker: 0 0, 1 1, 1 0, of which the last four count; by rank 0 0 would come among these
    def other(flags):
        assert flags == {1: {"task": [1.0, 1.0], "music": [0.0, 0.0]}}
        return {w: {"task": f, "music": [0.0, 0.0]} for w, f in ((2, [1.0, 0.0]), (0, [0.0, 0.0]))}

    levels = WeightLevels(CONFIG, INFO)
    levels.take_in(run_of(comm=Beside(other)), {1: played([1, 1], [0, 0])}, 0)
    assert levels.now["task"] == 3 / 4


def test_a_run_without_levels_asks_no_other_rank():
    levels, comm = WeightLevels(small.BASE, INFO), Beside()
    levels.take_in(run_of(comm=comm), {0: played([1], [1])}, 0)
    assert (comm.asked, levels.now, levels.shared()) == ([], {}, {})


def test_a_weight_has_its_last_value_after_its_latest_epoch_and_that_is_said_once(caplog):
    early = with_fields(CONFIG, {"task.weight_latest": 3, "task.weight": ((0.1, 0.0), (0.5, 1.0))})
    levels = WeightLevels(early, INFO)
    for epoch, level in ((2, 1 / 4), (3, 1.0), (4, 1.0)):
        levels.take_in(run_of(epoch), {0: played([epoch == 2, 0], [0, 0])}, 0)
        assert levels.now == {"task": level, "music": 0.0}
    (text,) = caplog.messages
    assert text.startswith("task.weight: at most 0.25 of 4 episodes moved the object in 3 epochs")
    caplog.clear()
    reached = WeightLevels(early, INFO)
    reached.take_in(run_of(3), {0: played([1, 1, 0, 0], [0] * 4)}, 0)  # by itself
    assert (reached.now["task"], caplog.messages) == (1 / 2, [])


@cases(
    ("env_id", "by", "told"),
    ("FetchReach-v4", "moved", "of which FetchReach-v4 has no known object\nadd --world.object"),
    ("FetchReach-v4", "lifted", "no known object, gripper, support\n"),
    ("HandManipulateBlock-v1", "lifted", "no known gripper, support\n"),
    ("Own-v0", "moved", "Own-v0 has no known object\n"),
)
def test_what_a_task_has_not_is_refused_in_three_lines(env_id, by, told):
    config = small.paying(small.BASE, dataclasses.replace(TASK, weight_by=by), env_id=env_id)
    with pytest.raises(UsageError, match=f"task.weight_by: {by} needs object.*{told}") as caught:
        WeightLevels(config, lookup(env_id))
    nearest = "moved" if env_id.startswith("Hand") else "epoch"
    assert str(caught.value).splitlines()[2:] == [f"nearest: --task.weight-by {nearest}"]


def test_weights_bounds_and_terms_that_rest_follow_the_level_and_not_the_epoch():
    trainer = small.trainer_of(with_fields(CONFIG, {"agent.return_clip": "paid"}))
    trainer.counters.epoch = 9
    for task, music, weights, low, active in (  # either pays -1 to 0; 1 / (1 - gamma) is 30
        (0.0, 0.0, (0.0, 0.25), -7.5, ["task", "music"]),
        (0.75, 0.5, (0.5, 0.25), -22.5, ["task", "music"]),
        (0.75, 1.0, (0.5, 0.0), -15.0, ["task"]),
    ):
        trainer.levels.now.update(task=task, music=music)
        now = trainer.schedules()
        assert tuple(float(weight) for weight in now.terms.values()) == weights
        assert tuple(map(float, now.bounds)) == pytest.approx((low, 0.0))
        assert [term.name for term in trainer.active_terms()] == active


SWITCHES = small.paying(
    small.HER,
    dataclasses.replace(TASK, weight_episodes=8, weight=((0.1, 0.0), (0.25, 1.0))),
    dataclasses.replace(
        small.SMALL_MUSIC, weight_by="moved", weight_episodes=8, weight=((0.1, 1.0), (0.25, 0.0))
    ),
    cycles=3,
)
"""A run whose weights switch within its two epochs."""


@pytest.mark.thorough
@pytest.mark.parametrize("lag", [0, 1])
def test_a_run_that_is_saved_within_an_epoch_switches_in_the_same_cycle(lag):
    straight, levels = small.trainer_of(SWITCHES, lag=lag), []

    def noted(done):
        del done
        levels.append(straight.levels.now["task"])
        return False

    rows = [straight.run_epoch(noted) for _ in range(2)]
    assert levels == sorted(levels)
    assert 0.0 == levels[0] < levels[-1]
    assert [row["reward/music_level"] for row in rows] == [levels[2], levels[5]]
    cut = small.trainer_of(SWITCHES, lag=lag)
    cut.run_epoch(lambda done: done == 2)
    resumed = small.restored(SWITCHES, small.saved(cut), lag=lag)
    while resumed.counters.epoch < 2:
        resumed.run_epoch(small.go_on)
    small.assert_same_state(straight, resumed)
