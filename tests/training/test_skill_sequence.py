"""Skills one after the other, on a point in a square: a few seconds each."""

import dataclasses
import itertools
import re
from typing import ClassVar

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.distributed import Communicator
from music_tf.errors import UsageError
from music_tf.gate import MisfitError, check_fit, expected_of
from music_tf.networks.acting import SnapshotPolicy, arrays_of
from music_tf.recipes import resolve
from music_tf.recipes.disk import DiskConfig
from music_tf.runs.comparison import compare
from music_tf.training.build import build_trainer
from music_tf.training.incremental import SkillSequence
from tests.kit.cases import cases
from tests.kit.one_by_one import TINY, trainer_of
from tests.kit.small import go_on

pytestmark = pytest.mark.thorough

EQUAL = {"disk.timesteps": "equal", "world.extras": ("time=time",), "disk.k": 3}


def trained(trainer, epochs=None):  # the metrics of each epoch up to one, or to the last
    rows = []
    while trainer.counters.epoch < (epochs or trainer.config.epochs):
        rows.append(trainer.run_epoch(go_on))
    return rows


def learned(trainer):  # frozen policies
    return trainer.part(SkillSequence).learned


def copied(snapshot):
    return {name: array.copy() for name, array in arrays_of(snapshot).items() if name != "prior"}


def test_a_finished_skill_stays_bit_for_bit_while_later_ones_learn():
    trainer = trainer_of()
    kept, paths = [], []
    for epochs in (2, 4, 6):
        trained(trainer, epochs)
        kept.append(copied(learned(trainer)[-1]))
        paths.append(trainer.evaluation.play(SnapshotPolicy(learned(trainer)[-1]), 2))
    assert len(learned(trainer)) == 3
    for snapshot, before, path in zip(learned(trainer), kept, paths, strict=True):
        np.testing.assert_equal(copied(snapshot), before)
        again = trainer.evaluation.play(SnapshotPolicy(snapshot), 2)
        np.testing.assert_array_equal(again.observation, path.observation)
    for one, other in itertools.combinations(kept, 2):
        assert not np.array_equal(one["observation"], other["observation"])  # moments went on
        assert not np.array_equal(one["actor/mean/kernel"], other["actor/mean/kernel"])
    assert trainer.update._run_updates.experimental_get_tracing_count() == 1


def test_a_skill_begins_with_weights_moments_and_temperature_of_a_beginning():
    trainer = trainer_of()
    trained(trainer, 2)
    before = trainer.shared()
    assert before["parameters/log_temperature"] != pytest.approx(np.log(0.1))
    trainer.part(SkillSequence).begin_epoch(trainer)
    after = trainer.shared()
    assert after["parameters/log_temperature"] == pytest.approx(np.log(0.1))
    assert not any(after[name].any() for name in after if name.startswith("adam_"))
    np.testing.assert_array_equal(after["normalizer/observation"], before["normalizer/observation"])
    fresh = trainer_of(seed=trainer.config.seed).shared()
    name = "parameters/actor/hidden_0/kernel"
    assert not np.array_equal(after[name], fresh[name])  # not the first skill's beginning


@pytest.mark.parametrize(("begin", "source"), [("first", 0), ("nearest", 1)])
def test_a_skill_may_begin_with_the_actor_of_an_earlier_one(begin, source, monkeypatch):
    trainer = trainer_of(**{"incremental.begin": begin})
    trained(trainer, 4)
    monkeypatch.setattr(trainer.terms[0], "frontier", lambda: 1)
    trainer.part(SkillSequence).begin_epoch(trainer)
    wanted = learned(trainer)[source].weights
    np.testing.assert_equal(trainer.update.actor_weights(), dict(wanted))
    critics = [n for n in trainer.shared() if n.startswith("parameters/critic")]
    other = trainer_of(**{"incremental.begin": "fresh"})
    trained(other, 4)
    other.part(SkillSequence).begin_epoch(other)
    for name in critics:
        np.testing.assert_array_equal(trainer.shared()[name], other.shared()[name])


@cases(
    ("balance", "progress"),
    ("running", [0.0, 0.25, 0.5, 0.75] * 3),  # counts steps
    ("released", [0.0, 0.0, 0.0, 10 / 80] * 3),  # updates, as the authors' code does
)
def test_each_skill_warms_up_and_counts_steps_and_updates_from_its_own_start(balance, progress):
    trainer = trainer_of(**{"collect.random_steps": 40, "disk.balance": balance})
    orders, seen = [], []
    order = trainer.collector.order

    def noted(ordered):
        orders.append(ordered.at_random)
        seen.append(trainer.terms[0].progress)
        order(ordered)

    trainer.collector.order = noted
    updates = [row["time/updates"] for row in trained(trainer)]
    # of 80 steps of a skill 40 are random; each two of the others bring an update
    assert (orders, updates) == ([True, True, False, False] * 3, [0, 20, 20, 40, 40, 60])
    assert seen == pytest.approx(progress)


def test_earlier_skills_are_played_anew_before_each_skill_and_the_newest_is_among_them():
    trainer = trainer_of()
    term = trainer.terms[0]
    trained(trainer, 1)
    reference = term.shared()["disk/past"][0].copy()
    assert term.shared()["disk/past_counts"].tolist() == [20, 0, 0]  # two episodes of ten steps
    trained(trainer, 3)
    assert term.shared()["disk/past_counts"].tolist() == [20, 0, 0]
    assert not np.array_equal(term.shared()["disk/past"][0], reference)
    trained(trainer, 5)
    assert term.shared()["disk/past_counts"].tolist() == [20, 20, 0]
    played = trainer.evaluation.play(SnapshotPolicy(learned(trainer)[1]), 2)
    places = played.observation[:, 1:].reshape(-1, 2)
    np.testing.assert_array_equal(term.shared()["disk/past"][1, :20], places)


def test_in_another_world_and_back_again_a_skill_is_played_anew():
    wall = ', "set": {"wall": true}}'
    changes = '[{}, {"at": {"skill": 1}' + wall + ', {"at": {"skill": 2}, "set": {"wall": false}}]'
    trainer = trainer_of(**{"env.changes": changes})
    seen = []
    for epochs in (3, 5):
        trained(trainer, epochs)
        seen.append(dict(trainer.part(SkillSequence)._played_in))
    assert seen == [{0: 1}, {0: 2, 1: 2}]


def test_without_a_reference_the_first_skill_differs_from_nothing():
    trainer = trainer_of(**{"incremental.first": "nothing"})
    (row,) = trained(trainer, 1)
    assert trainer.terms[0].shared()["disk/past_counts"].tolist() == [0, 0, 0]
    assert "disk/past" not in row
    assert row["disk/own"] > 0.0


@pytest.mark.parametrize("past", ["refresh", "append"])
def test_what_is_appended_once_describes_the_world_of_that_time(past):
    changes = '[{"set": {"wall": true}}, {"at": {"skill": 2}, "set": {"wall": false}}]'
    trainer = trainer_of(**{"env.changes": changes, "incremental.past": past})
    trained(trainer, 5)  # the third skill has begun, and the wall is open
    assert trainer.terms[0].shared()["disk/past_counts"].tolist() == [20, 20, 0]
    open_world = trainer.evaluation
    closed = open_world._replace(world=0)
    assert (open_world.world, closed.world) == (1, 0)
    for skill, snapshot in enumerate(learned(trainer)):
        world = open_world if past == "refresh" else closed
        places = world.play(SnapshotPolicy(snapshot), 2).observation[:, 1:].reshape(-1, 2)
        np.testing.assert_array_equal(trainer.terms[0].shared()["disk/past"][skill, :20], places)


@cases(
    ("changes", "said"),
    ({}, ""),
    ({"disk.k": 31, "incremental.collected": 4}, "the own past has 30 rows"),
    (EQUAL, "disk.k is 3, and the past of one skill has 2 rows .* counts as 1"),
    (EQUAL | {"incremental.collected": 3}, ""),
)
def test_more_neighbours_than_there_are_rows_of_are_said_before_a_run_begins(changes, said):
    trainer = trainer_of(**changes)
    told = [notice for notice in trainer.notices if "disk.k" in notice]
    assert len(told) == bool(said)
    assert re.search(said, told[0] if told else "")


@pytest.mark.parametrize(("replay", "steps"), [("keep", 80), ("reset", 0), ("purge", 40)])
def test_a_new_skill_learns_from_all_nothing_or_half_of_what_is_there(replay, steps):
    trainer = trainer_of(**{"incremental.replay": replay})
    trained(trainer, 2)
    trainer.replay.mark_saved()
    trainer.part(SkillSequence).begin_epoch(trainer)
    assert trainer.replay.shards[0].size == steps
    assert trainer.replay.shrunk == (replay != "keep")


def test_one_skill_acts_in_an_epoch_and_an_evaluation():
    trainer = trainer_of()
    seen = []
    trained(trainer, 3)
    trainer.run_epoch(go_on, lambda played: seen.append(played.skill))
    np.testing.assert_array_equal(seen[0], [[0, 1, 0]] * 2)
    np.testing.assert_array_equal(trainer.replay.shards[0]._live["skill"][-4:], [[0, 1, 0]] * 4)


def test_skills_are_measured_at_their_ends_alone():
    rows = trained(trainer_of())
    apart = [row.get("skill/hausdorff_mean") for row in rows]
    assert [value is not None for value in apart] == [False, False, False, True, False, True]
    assert rows[5]["skill/hausdorff_min"] <= apart[5]
    assert [("skill/spread" in row) for row in rows] == [False, True] * 3
    assert rows[5]["skill/spread"] == 0.0  # of equal episodes
    assert [row["disk/skill"] for row in rows] == [0, 0, 1, 1, 2, 2]


def test_before_a_skill_is_finished_the_one_at_hand_is_judged_and_differs_from_no_other():
    trainer = trainer_of()
    trained(trainer, 1)
    evaluation, policy = trainer.final_policy()
    assert evaluation.config.skills == 1
    played = evaluation.play(policy, 2)
    np.testing.assert_array_equal(
        played.observation, trainer.evaluation.play(trainer.policy(), 2).observation
    )
    assert "skill/hausdorff_mean" not in compare(evaluation, policy, 2).policies["ours"]
    trained(trainer, 4)
    assert trainer.final_policy()[0].config.skills == 2


class Cut:  # what a run has saved at the end of each epoch, as its session keeps it
    def __init__(self, trainer):
        self.trainer, self.at, self.chain = trainer, {}, []
        while trainer.counters.epoch < trainer.config.epochs:
            trainer.run_epoch(go_on)
            compact = trainer.replay.shrunk
            rows = trainer.of_workers(everything=compact)
            self.chain = [rows] if compact else [*self.chain, rows]
            trainer.replay.mark_saved()
            shared = {name: array.copy() for name, array in trainer.shared().items()}
            self.at[trainer.counters.epoch] = shared, trainer.meta(), list(self.chain)

    def resumed(self, epoch, config):  # a trainer that goes on from there
        trainer = build_trainer(config, Communicator(alone=True))
        shared, meta, chain = self.at[epoch]
        trainer.load(shared, meta)
        trainer.load_workers({w: [rows[w] for rows in chain if rows[w]] for w in (0, 1)})
        return trainer


@cases(
    "changes",
    {"incremental.replay": "keep", "lag": 1},
    {"incremental.replay": "reset", "disk.balance": "previous", "incremental.past": "append"},
    {"incremental.replay": "purge", "disk.timesteps": "equal", "world.extras": ("t=time",)},
    ids=["keep", "reset", "purge"],
)
def test_a_run_that_was_cut_within_or_between_skills_goes_on_bit_for_bit(changes):
    config = with_fields(TINY, {"workers": 2, **changes})
    whole = build_trainer(config, Communicator(alone=True))
    cut = Cut(whole)
    for epoch in (1, 2, 3):  # within the first skill, between two, within the second
        again = cut.resumed(epoch, config)
        trained(again)
        np.testing.assert_equal(again.shared(), whole.shared(), str(epoch))
        for one, other in zip(learned(again), learned(whole), strict=True):
            np.testing.assert_equal(copied(one), copied(other))
        steps = dataclasses.asdict(again.counters) | {"elapsed_s": 0.0}
        assert steps == dataclasses.asdict(whole.counters) | {"elapsed_s": 0.0}


@pytest.mark.parametrize("wrong", [{"worlds": [0] * 4}, {"worlds": [-1]}, {"updates": 1.5}])
def test_a_checkpoint_that_has_learned_what_no_run_has_is_refused(wrong):
    trainer = trainer_of()
    trained(trainer, 1)
    meta = trainer.meta()
    with pytest.raises(ValueError, match=r"incremental"):
        trainer_of().load(trainer.shared(), meta | {"incremental": meta["incremental"] | wrong})


@pytest.mark.slow
def test_four_skills_of_a_point_go_to_four_places():
    trainer = build_trainer(resolve("sac_disk"), Communicator(alone=True))
    rows = [row for row in trained(trainer) if "skill/hausdorff_mean" in row]
    assert len(rows) == 3
    for row in rows:  # 14.1 is the best that there is, 3 what random actions have
        assert row["skill/hausdorff_mean"] >= 11.0
        assert row["skill/hausdorff_min"] >= 8.0


@pytest.mark.slow
def test_a_skill_that_is_learned_after_a_wall_has_opened_goes_behind_it():
    opens = '[{"set": {"wall": true}}, {"at": {"skill": 2}}]'
    # on some seeds frozen skills of before go there by themselves, and new ones elsewhere
    config = with_fields(resolve("sac_disk"), {"env.changes": opens, "seed": 290})
    trainer = build_trainer(config, Communicator(alone=True))
    last = trained(trainer)[-1]
    assert trainer.part(SkillSequence).progress.worlds == [0, 0, 1, 1]
    played = [
        trainer.part(SkillSequence).play(trainer.evaluation, SnapshotPolicy(snapshot), skill)
        for skill, snapshot in enumerate(learned(trainer))
    ]
    assert max(one.observation[:, -1, 0].max() for one in played[2:]) >= 7.0
    assert last["skill/hausdorff_min"] >= 8.0


@pytest.mark.parametrize("steps", [4, 15])
def test_evaluation_may_play_longer_or_shorter_episodes_and_changes_no_training(steps):
    trainer, usual = trainer_of(**{"evaluation.length": steps}), trainer_of()
    found, expected = trained(trainer, 4), trained(usual, 4)
    assert [
        (row["eval/length"], other["eval/length"])
        for row, other in zip(found, expected, strict=True)
    ] == [(steps, 10.0)] * 4
    assert found[-1]["skill/hausdorff_mean"] != expected[-1]["skill/hausdorff_mean"]
    np.testing.assert_equal(trainer.shared(), usual.shared())  # the past of both is as in training
    judged, policy = trainer.final_policy()
    assert judged.play(policy, 2).observation.shape == (2, steps + 1, 2)


def test_a_finished_run_learns_more_skills_behind_those_that_it_has():
    config = with_fields(TINY, {"workers": 2, "lag": 1})
    whole = build_trainer(config, Communicator(alone=True))
    cut = Cut(whole)
    more = with_fields(config, {"skills": 5, "epochs": 10})
    again = cut.resumed(6, more)
    skills = [row["disk/skill"] for row in trained(again)]
    assert (skills, len(learned(again))) == ([3, 3, 4, 4], 5)
    for one, other in zip(learned(again), learned(whole), strict=False):
        np.testing.assert_equal(copied(one), copied(other))
    straight = build_trainer(more, Communicator(alone=True))
    trained(straight)
    np.testing.assert_equal(straight.shared(), again.shared())


def test_a_checkpoint_of_fewer_skills_is_expected_and_one_of_more_is_not():
    few, many = trainer_of(), trainer_of(**{"skills": 5, "epochs": 10})
    few_state, many_state = expected_of(few.shared()), expected_of(many.shared())
    check_fit(few_state, many.expected().shared(few_state))
    check_fit(many_state, many.expected().shared(many_state))
    with pytest.raises(MisfitError, match="past"):
        check_fit(many_state, few.expected().shared(many_state))
    rows = expected_of(few.replay.shards[0].full_rows()) | expected_of(few._of_worker(0), free=True)
    check_fit(rows, many.expected().rows(rows), rows=True)
    wide = rows | {"skill": (np.dtype(np.float32), (10, 6))}
    with pytest.raises(MisfitError, match="skill"):
        check_fit(wide, few.expected().rows(wide), rows=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaidAtOnce(DiskConfig):
    term: ClassVar[str] = "music_tf.intrinsic.task:TaskReward"
    scale: float = 1.0


def test_settings_that_pay_skills_in_turn_need_a_term_that_can():
    config = dataclasses.replace(resolve("sac_disk"), rewards={"disk": PaidAtOnce()})
    with pytest.raises(UsageError, match=r"pay skills one after the other.*got TaskReward"):
        build_trainer(config, Communicator())
