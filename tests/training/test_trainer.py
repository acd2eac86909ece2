import dataclasses
import json
import math

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import (
    ExplorationConfig,
    MusicConfig,
    SacConfig,
    SkillConfig,
    TaskConfig,
)
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.intrinsic.music import Music
from music_tf.storage.metrics import METRICS
from music_tf.training import collect
from music_tf.training.evaluation import still
from tests.kit.small import (
    ALL,
    BASE,
    EVERYTHING,
    HER,
    MUSIC,
    NETWORK,
    SAC,
    SMALL_MUSIC,
    TIMES,
    assert_same_state,
    go_on,
    paying,
    replay_state,
    trainer_of,
)

STEPS = 30


def saved(trainer):
    """What a checkpoint of it holds, after the way through JSON."""
    rows = {
        worker: {name: np.copy(array) for name, array in new.items()}
        for worker, new in trainer.replay.unsaved().items()
    }
    arrays = {name: np.copy(array) for name, array in trainer.shared().items()}
    return arrays, json.loads(json.dumps(trainer.meta())), rows


def restored(config, state):
    arrays, meta, rows = state
    trainer = trainer_of(config)
    trainer.load(arrays, meta)
    for worker, new in rows.items():
        trainer.replay.shards[worker].restore([new])
    return trainer


@pytest.fixture(scope="module")
def trained():
    """Every configuration after two epochs, its metrics, and what the first epoch left."""
    runs = {}
    for name, config in ALL.items():
        trainer = trainer_of(config)
        first = trainer.run_epoch(go_on)
        state = saved(trainer)
        runs[name] = (trainer, [first, trainer.run_epoch(go_on)], state)
    return runs


def test_an_epoch_takes_the_updates_and_steps_it_says(trained):
    trainer, metrics, _ = trained["her"]
    # 2 epochs of 2 cycles: 2 workers of 2 episodes of 30 steps, and 3 updates
    counters = trainer.counters
    assert (counters.epoch, counters.cycle) == (2, 4)
    assert (counters.updates, int(trainer.update.step)) == (12, 12)
    assert counters.env_steps == 4 * 2 * 2 * STEPS
    for shard in trainer.replay.shards.values():
        assert shard.size == 4 * 2
    assert [row["time/epoch"] for row in metrics] == [1.0, 2.0]
    assert [row["time/env_steps"] for row in metrics] == [240.0, 480.0]
    assert [row["time/updates"] for row in metrics] == [6.0, 12.0]


@pytest.mark.parametrize("name", ALL)
def test_metrics_are_finite_documented_and_the_same_every_epoch(trained, name):
    _, metrics, _ = trained[name]
    for row in metrics:
        assert set(row) == set(metrics[0])
        assert set(row) <= set(METRICS)
        assert all(math.isfinite(value) for value in row.values())
        for term in ALL[name].rewards:
            names = [f"reward/{term}_{part}" for part in ("min", "mean", "max")]
            low, mean, high = (row[each] for each in names)
            assert low <= mean <= high
            # the deviation is a difference of squares in single precision
            assert 0.0 <= row[f"reward/{term}_std"] <= (high - low) + 1e-3
        assert ("music/bound" in row) == ("music" in ALL[name].rewards)
        assert ("music/bound_heldout" in row) == ("music" in ALL[name].rewards)
        assert ("skill/accuracy" in row) == ("skill" in ALL[name].rewards)
        assert ("skill/accuracy_heldout" in row) == ("skill" in ALL[name].rewards)
        assert ("eval/success_rate" in row) == (ALL[name].goals == "environment")
        assert ("rollout/success_rate" in row) == (ALL[name].goals == "environment")


def test_the_released_rewards_are_costs(trained):
    for name in ("music", "everything"):
        row = trained[name][1][0]
        assert -1.0 <= row["reward/music_min"] <= row["reward/music_max"] <= 0.0
    assert row["reward/skill_max"] <= 0.0
    assert row["reward/skill_min"] >= -1.0
    assert (row["reward/task_min"], row["reward/task_max"]) == (-1.0, pytest.approx(-0.5, abs=0.5))


@pytest.mark.parametrize("name", ALL)
def test_a_restored_trainer_goes_on_bit_equal(trained, name):
    trainer, metrics, state = trained[name]
    other = restored(ALL[name], state)
    row = other.run_epoch(go_on)
    assert_same_state(trainer, other)
    assert other.counters.env_steps == trainer.counters.env_steps
    assert {k: v for k, v in row.items() if k not in TIMES} == {
        k: v for k, v in metrics[1].items() if k not in TIMES
    }


@pytest.mark.parametrize("name", ["everything"])
def test_an_interrupted_epoch_goes_on_where_it_stopped(trained, name):
    trainer, metrics, state = trained[name]
    other = restored(ALL[name], state)
    assert other.run_epoch(lambda done: done == 1) is None
    assert (other.counters.epoch, other.counters.cycle, other.log.cycles) == (1, 3, 1)
    arrays, meta, rows = saved(other)
    third = restored(ALL[name], (arrays, meta, state[2]))
    for worker, new in rows.items():
        third.replay.shards[worker].restore([new])
    row = third.run_epoch(go_on)
    assert_same_state(trainer, third)
    assert {k: v for k, v in row.items() if k not in TIMES} == {
        k: v for k, v in metrics[1].items() if k not in TIMES
    }


def test_a_request_at_the_last_cycle_lets_the_epoch_finish():
    trainer = trainer_of(cycles=2)
    assert trainer.run_epoch(lambda done: done == 2) is not None
    assert trainer.counters.epoch == 1


def test_the_seed_decides_everything():
    first, same, other = (trainer_of(SAC, seed=seed) for seed in (3, 3, 4))
    for trainer in (first, same, other):
        trainer.run_epoch(go_on)
    assert_same_state(first, same)
    for name in ("parameters/actor/hidden_0/kernel", "normalizer/observation"):
        assert (first.shared()[name] != other.shared()[name]).any()
    assert (replay_state(first)[0]["action"] != replay_state(other)[0]["action"]).all()


def test_evaluation_changes_nothing(trained):
    trainer, _, state = trained["her"]
    other = restored(HER, state)
    first = other.evaluate(7)
    assert other.evaluate(7) == first
    other.evaluate(3, still)
    other.run_epoch(go_on)
    assert_same_state(trainer, other)


def test_evaluation_can_pin_a_skill(trained):
    trainer, _, _ = trained["everything"]
    asked = []
    for skill in (None, 2):
        trainer.evaluate(4, skill=skill, on_played=lambda played: asked.append(played.skill))
    assert [one.argmax(axis=1).tolist() for one in asked] == [[0, 1, 2, 0], [2, 2, 2, 2]]


def test_a_pinned_skill_acts_in_training_and_evaluation():
    trainer = trainer_of(SAC, skills=4, pinned_skill=2)
    trainer.run_epoch(go_on)
    for rows in replay_state(trainer).values():
        assert (rows["skill"].argmax(axis=1) == 2).all()
    assert (trainer.played(5, trainer.policy()).skill.argmax(axis=1) == 2).all()
    assert (trainer.played(5, trainer.policy(), 1).skill.argmax(axis=1) == 1).all()


def test_skills_of_a_worker_follow_from_the_seed_alone():
    two, four = trainer_of(EVERYTHING, workers=2), trainer_of(EVERYTHING, workers=4)
    for trainer in (two, four):
        trainer.run_epoch(go_on)
    for worker in (0, 1):
        few, many = (replay_state(trainer)[worker]["skill"] for trainer in (two, four))
        np.testing.assert_array_equal(few, many)
    assert (replay_state(two)[0]["skill"] != replay_state(two)[1]["skill"]).any()


@pytest.mark.parametrize("learner", ["agent", "discriminator"])
def test_discriminator_and_agent_leave_each_other_alone(learner):
    still = {"actor_learning_rate": 0.0, "critic_learning_rate": 0.0}
    config = dataclasses.replace(
        paying(EVERYTHING, SkillConfig(hidden_sizes=(8,), train=learner == "discriminator")),
        agent=SacConfig(**NETWORK, **(still if learner == "discriminator" else {})),
    )
    trainer = trainer_of(config)
    before = trainer.weights()
    trainer.run_epoch(go_on)
    changed = {
        name.split("/")[1]
        for name, array in trainer.weights().items()
        if name.startswith("parameters/") and (array != before[name]).any()
    }
    discriminates = {"discriminator"} == changed
    assert discriminates if learner == "discriminator" else changed == {"actor", "critic_0"}


def test_workers_explore_and_learn_from_different_data():
    trainer = trainer_of(MUSIC)
    trainer.run_epoch(go_on)
    first, second = replay_state(trainer).values()
    assert (first["observation"][:, 0] != second["observation"][:, 0]).any(axis=-1).all()
    assert (first["action"] != second["action"]).any(axis=(1, 2)).all()


def test_more_workers_leave_the_data_of_the_first_ones_alone():
    two, four = trainer_of(workers=2), trainer_of(workers=4)
    for trainer in (two, four):
        trainer.collect()
    for worker in (0, 1):
        np.testing.assert_equal(replay_state(four)[worker], replay_state(two)[worker])


def test_unsupervised_training_sees_zero_goals_only():
    trainer = trainer_of(MUSIC)
    trainer.run_epoch(go_on)
    for rows in replay_state(trainer).values():
        assert not rows["desired_goal"].any()
    assert not trainer.inputs.goals.moments.mean.any()
    np.testing.assert_allclose(trainer.inputs.goals.moments.deviation, 0.01)


def test_normalisers_count_every_step_once_and_see_relabelled_goals():
    trainer, plain = trainer_of(HER), trainer_of(BASE)
    for each in (trainer, plain):
        each.collect()
        # 1 + N / W = 1 + 2 workers * 2 episodes * 30 steps / 2
        assert each.inputs.observations.state[-1] == each.inputs.goals.state[-1] == 61.0
    own = np.concatenate([rows["desired_goal"] for rows in replay_state(plain).values()])
    bound = np.abs(own).max() + 1e-6
    assert (np.abs(plain.inputs.goals.moments.mean) <= bound).all()
    assert (trainer.inputs.goals.state != plain.inputs.goals.state).any()
    np.testing.assert_array_equal(
        replay_state(trainer)[0]["desired_goal"], replay_state(plain)[0]["desired_goal"]
    )


class OneStepAhead(Communicator):
    """A rank beside one that took another step."""

    def __init__(self):
        super().__init__()
        self.size = 2

    def collect(self, value):
        self.compared = set(value)
        return [value, value | {"optimiser step": "another"}]


def test_ranks_compare_all_that_a_checkpoint_holds_and_the_step():
    trainer = trainer_of(BASE)
    trainer.comm = ranks = OneStepAhead()
    with pytest.raises(NumbersFault, match=r"after 0 updates: optimiser step on ranks \[1\]"):
        trainer.check_equal()
    assert ranks.compared == {*trainer.shared(), "optimiser step"}


def test_without_updates_data_is_collected_all_the_same():
    trainer = trainer_of(updates=0)
    before = trainer.shared()["parameters/actor/action/kernel"]
    row = trainer.run_epoch(go_on)
    np.testing.assert_array_equal(trainer.shared()["parameters/actor/action/kernel"], before)
    assert row["time/env_steps"] == 240.0
    assert not any(name.startswith(("train/", "reward/")) for name in row)


def push_out(observation, goal, skill, noise):
    """Takes hold of the disc and carries it over the edge at x = 1."""
    away = observation[:, 3:5] - observation[:, :2]
    far = np.linalg.norm(away, axis=-1, keepdims=True) > 0.12
    out = np.tile(np.float32([[1.0, 0.0]]), (len(away), 1))
    way = np.where(far, np.clip(away / 0.1, -1.0, 1.0), out)
    return np.concatenate([way, np.where(far, -1.0, 1.0)], axis=-1).astype(np.float32)


def test_a_lost_object_ends_an_episode_in_replay_but_not_in_behaviour(monkeypatch):
    monkeypatch.setattr(collect, "policy_of", lambda *_, **named: push_out)
    quiet = ExplorationConfig(noise=0.0, random_probability=0.0)
    found = {}
    for mode in ("continue", "absorb"):
        trainer = trainer_of(MUSIC, rollouts=5, lost_object=mode, exploration=quiet)
        episodes = trainer.collect()
        found[mode] = replay_state(trainer)
        assert (episodes.length == STEPS).all()
        assert not episodes.lost.any()
    lost = 0
    for worker, rows in found["absorb"].items():
        whole = found["continue"][worker]
        # a disc over the edge lies at z = -0.5 from then on
        fallen = whole["observation"][:, :, 5] < -0.4
        first = np.where(fallen.any(axis=1), fallen.argmax(axis=1), STEPS)
        np.testing.assert_array_equal(rows["lost"], fallen.any(axis=1))
        np.testing.assert_array_equal(rows["length"], first)
        assert not whole["lost"].any()
        lost += rows["lost"].sum()
    assert lost > 2


def test_weights_are_what_acting_needs(trained):
    trainer, _, _ = trained["everything"]
    other = trainer_of(EVERYTHING, seed=9)
    generator = np.random.default_rng(0)
    rows = [generator.normal(size=(6, size)).astype(np.float32) for size in (8, 3, 3, 3)]
    assert (other.policy()(*rows) != trainer.policy()(*rows)).any()
    other.load_weights(trainer.weights())
    np.testing.assert_array_equal(other.policy()(*rows), trainer.policy()(*rows))
    assert not any(name.startswith(("adam", "targets")) for name in trainer.weights())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda arrays: arrays.pop("parameters/actor/mean/bias"), "actor/mean/bias: missing"),
        (
            lambda arrays: arrays.update({"parameters/extra": np.zeros(1, "f4")}),
            "extra: no such weight",
        ),
        (lambda arrays: arrays.pop("normalizer/goal"), "normalizer/goal: missing"),
        (
            lambda arrays: arrays.update({"normalizer/goal": np.zeros(5)}),
            r"normalizer/goal: expected totals of shape \(7,\), got \(5,\)",
        ),
        (lambda arrays: arrays.pop("targets/actor/mean/bias"), "actor/mean/bias: missing"),
        (
            lambda arrays: arrays.update({"adam_first/actor/mean/bias": np.zeros(4, "f4")}),
            r"actor/mean/bias: expected float32 \(3,\), found float32 \(4,\)",
        ),
        (
            lambda arrays: arrays.update({"targets/actor/mean/bias": np.zeros(3)}),
            r"actor/mean/bias: expected float32 \(3,\), found float64 \(3,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(trained, change, says):
    _, _, (arrays, meta, _) = trained["sac"]
    arrays = dict(arrays)
    change(arrays)
    with pytest.raises(ValueError, match=says):
        trainer_of(SAC).load(arrays, meta)


def test_a_frozen_statistics_network_stays_as_it_is_through_training():
    config = paying(MUSIC, MusicConfig(train=False, hidden_size=16))
    trainer = trainer_of(config)
    before = {k: v for k, v in trainer.shared().items() if "statistics" in k}
    row = trainer.run_epoch(go_on)
    after = {k: v for k, v in trainer.shared().items() if "statistics" in k}
    np.testing.assert_equal(after, before)
    assert len(before) == 18
    assert row["reward/music_min"] == -1.0
    assert "music/bound" not in row
    assert "music/bound_heldout" in row


def test_every_episode_in_replay_has_its_own_priority(monkeypatch):
    def distance_covered(self, weights, episodes, worker, cycle):
        return np.abs(episodes.action).sum(axis=(1, 2)) + 1000 * worker + 100 * cycle

    monkeypatch.setattr(Music, "priorities", distance_covered)
    trainer = trainer_of(MUSIC, replay=dataclasses.replace(HER.replay, priority="music"))
    trainer.run_epoch(go_on)
    for worker, shard in trainer.replay.shards.items():
        covered = np.abs(shard.arrays["action"][:4]).sum(axis=(1, 2))
        expected = covered + 1000 * worker + [0, 0, 100, 100]
        np.testing.assert_allclose(shard.arrays["priority"][: shard.size], expected, rtol=1e-6)
        assert len(np.unique(expected)) == 4


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "HandManipulateBlock-v1"])
def test_mujoco_tasks_go_on_bit_equal_too(env_id):
    config = dataclasses.replace(MUSIC, env_id=env_id, workers=1, rollouts=1, cycles=1)
    straight = trainer_of(config)
    for _ in range(2):
        straight.run_epoch(go_on)
    first = trainer_of(config)
    first.run_epoch(go_on)
    second = restored(config, saved(first))
    second.run_epoch(go_on)
    assert_same_state(straight, second)


def handed_over():
    """MUSIC for one epoch, then the task alone."""
    task = TaskConfig(weight=((0.0, 0.0), (1.0, 1.0)))
    music = dataclasses.replace(SMALL_MUSIC, weight=((0.0, 1.0), (1.0, 0.0)))
    return paying(HER, task, music)


def test_a_term_whose_weight_stays_zero_is_no_longer_fed_nor_measured():
    trainer = trainer_of(handed_over())
    first = trainer.run_epoch(go_on)
    state = saved(trainer)
    second = trainer.run_epoch(go_on)
    assert {"reward/music_mean", "music/bound", "reward/task_std"} < set(first)
    assert "music/bound_heldout" not in first  # evaluated at the end of the epoch, after its time
    assert not [name for name in second if "music" in name]
    assert second["reward/task_mean"] < 0.0 == first["reward/task_mean"]
    again = restored(handed_over(), state)
    again.run_epoch(go_on)
    assert_same_state(trainer, again)


def test_a_run_whose_only_term_has_no_weight_goes_on_without_reward():
    config = with_fields(BASE, {"task.weight": ((0.0, 0.0),)})
    metrics = trainer_of(config).run_epoch(go_on)
    assert metrics["reward/task_min"] == metrics["reward/task_max"] == 0.0


def test_moments_of_another_environment_are_named():
    trainer = trainer_of()
    arrays = trainer.shared()
    arrays["normalizer/goal"] = np.ones(3)
    with pytest.raises(ValueError, match=r"normalizer/goal: expected totals of shape \(7,\)"):
        trainer.load_weights(arrays)
    del arrays["normalizer/goal"]
    with pytest.raises(ValueError, match="normalizer/goal: missing"):
        trainer.load_weights(arrays)
