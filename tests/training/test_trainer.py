import dataclasses
import math

import numpy as np
import pytest

from music_tf.config.fields import with_fields
from music_tf.config.settings import CollectConfig, ExplorationConfig
from music_tf.config.terms import TaskConfig
from music_tf.errors import NumbersFault
from music_tf.intrinsic.music import Music
from music_tf.randomness import stream
from music_tf.rollout import perturbation
from music_tf.storage.metrics import known_to
from music_tf.training import collect, feeding
from music_tf.training import trainer as trainer_module
from music_tf.training.evaluation import Evaluation, random_actions, zero_policy
from tests.kit.cases import cases
from tests.kit.pearl import small as small_pearl
from tests.kit.ranks import Beside
from tests.kit.small import (
    ALL,
    BASE,
    EVERYTHING,
    HER,
    MUSIC,
    SAC,
    SMALL_MUSIC,
    SMALL_SKILL,
    TIMES,
    assert_same_state,
    go_on,
    paying,
    replay_state,
    restored,
    saved,
    trainer_of,
)

STEPS = 30


def without_times(row):
    return {name: value for name, value in row.items() if name not in TIMES}


@pytest.fixture(scope="module")
def trained():  # every configuration after two epochs, its metrics, and what the first epoch left
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
    assert [shard.size for shard in trainer.replay.shards.values()] == [8, 8]
    for name, values in (("epoch", [1, 2]), ("env_steps", [240, 480]), ("updates", [6, 12])):
        assert [row[f"time/{name}"] for row in metrics] == values


@pytest.mark.parametrize("name", ALL)
def test_metrics_are_finite_declared_and_the_same_every_epoch(trained, name):
    trainer, metrics, _ = trained[name]
    rewards, goals = ALL[name].rewards, ALL[name].goals == "environment"
    for row in metrics:
        assert set(row) == set(metrics[0])
        assert set(row) <= known_to(trainer.config).keys()
        assert all(math.isfinite(value) for value in row.values())
        for term in (*rewards, *["entropy"] * (name in ("sac", "everything"))):
            low, mean, high = (row[f"reward/{term}_{part}"] for part in ("min", "mean", "max"))
            assert low <= mean <= high
            # the deviation is a difference of squares in single precision
            assert 0.0 <= row[f"reward/{term}_std"] <= (high - low) + 1e-3
        for metric, there in (
            ("music/bound", "music" in rewards),
            ("music/bound_heldout", "music" in rewards),
            ("skill/accuracy", "skill" in rewards),
            ("skill/accuracy_heldout", "skill" in rewards),
            ("music/gain", name == "everything"),  # auto there
            ("music/pair_bound", name == "everything"),
            ("reward/entropy_mean", name in ("sac", "everything")),
            ("eval/success_rate", goals),
            ("rollout/success_rate", goals),
        ):
            assert (metric in row) == there


@pytest.mark.parametrize("name", ALL)
def test_a_restored_trainer_goes_on_bit_equal(trained, name):
    trainer, metrics, state = trained[name]
    other = restored(ALL[name], state)
    assert without_times(other.run_epoch(go_on)) == without_times(metrics[1])
    assert_same_state(trainer, other)
    assert other.counters.env_steps == trainer.counters.env_steps


def test_evaluation_changes_nothing(trained):
    trainer, _, state = trained["her"]
    other = restored(HER, state)
    assert other.evaluate() == other.evaluate()
    other.evaluation.play(zero_policy, 3)
    other.run_epoch(go_on)
    assert_same_state(trainer, other)


def test_what_a_worker_plays_follows_from_the_seed_and_its_number_alone():
    two, four = (trainer_of(EVERYTHING, workers=workers, rollouts=6) for workers in (2, 4))
    for trainer in (two, four):
        trainer.collect()
    first, second = (replay_state(two)[worker] for worker in (0, 1))
    np.testing.assert_equal([replay_state(four)[worker] for worker in (0, 1)], [first, second])
    assert (first["skill"] != second["skill"]).any()
    assert (first["observation"][:, 0] != second["observation"][:, 0]).any(axis=-1).all()
    assert (first["action"] != second["action"]).any(axis=(1, 2)).all()


def test_unsupervised_training_sees_zero_goals_only(trained):
    trainer = trained["music"][0]
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


def test_ranks_compare_all_that_a_checkpoint_holds_and_the_step():
    trainer = trainer_of(BASE)
    trainer.comm = ranks = Beside(lambda digests: digests | {"optimiser step": "another"})
    with pytest.raises(NumbersFault, match=r"after 0 updates: optimiser step on ranks \[1\]"):
        trainer.check_equal()
    assert set(ranks.asked[0]) == {*trainer.shared(), "optimiser step"}


def push_out(observation, goal, skill, noise):
    """Takes hold of the disc and carries it over the edge at x = 1."""
    away = observation[:, 3:5] - observation[:, :2]
    far = np.linalg.norm(away, axis=-1, keepdims=True) > 0.12
    out = np.tile(np.float32([[1.0, 0.0]]), (len(away), 1))
    way = np.where(far, np.clip(away / 0.1, -1.0, 1.0), out)
    return np.concatenate([way, np.where(far, -1.0, 1.0)], axis=-1).astype(np.float32)


def test_a_lost_object_ends_an_episode_in_replay_but_not_in_behaviour(monkeypatch):
    monkeypatch.setattr(collect, "SnapshotPolicy", lambda *_, **named: push_out)
    quiet = ExplorationConfig(noise=0.0, random_probability=0.0)
    found = {}
    for mode in ("continue", "absorb"):
        trainer = trainer_of(MUSIC, rollouts=5, lost_object=mode, exploration=quiet)
        trainer.order(0)
        episodes = trainer.collector.collect().played
        trainer.collect()
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
    other.start_from(other.shared() | trainer.weights())
    np.testing.assert_array_equal(other.policy()(*rows), trainer.policy()(*rows))
    assert not any(name.startswith(("adam", "targets")) for name in trainer.weights())


@cases(
    ("name", "found", "says"),
    ("parameters/extra", np.zeros(1, "f4"), "extra: no such weight"),
    ("normalizer/goal", None, "normalizer/goal: missing"),
    ("normalizer/goal", np.zeros(5), r"goal: expected totals of shape \(7,\), got \(5,\)"),
    ("targets/actor/mean/bias", None, "actor/mean/bias: missing"),
    ("adam_first/actor/mean/bias", np.zeros(4, "f4"), r"expected float32 \(3,\), found float32"),
    ("targets/actor/mean/bias", np.zeros(3), r"float32 \(3,\), found float64 \(3,\)"),
)
def test_what_does_not_fit_is_refused_by_name(trained, name, found, says):
    _, _, (arrays, meta, _) = trained["sac"]
    changed = {key: array for key, array in (arrays | {name: found}).items() if array is not None}
    trainer = trainer_of(SAC)
    with pytest.raises(ValueError, match=says):
        trainer.load(changed, meta)
    if not name.startswith("adam"):
        with pytest.raises(ValueError, match=says):
            trainer.start_from(changed)


@pytest.mark.thorough
def test_measures_beside_random_actions_are_judged_anew_on_episodes_played_once(monkeypatch):
    played = []
    random = Evaluation.random

    def counted(self):
        played.append(self.world)
        return random(self)

    monkeypatch.setattr(Evaluation, "random", counted)
    trainer = trainer_of(paying(MUSIC, dataclasses.replace(SMALL_MUSIC, gain="auto")))
    first, second = trainer.run_epoch(go_on), trainer.run_epoch(go_on)
    assert played == [0]
    for name in ("eval/information", "music/paid", "music/bound"):
        own = name if name == "eval/information" else f"{name}_heldout"
        assert {own, f"{name}_random"} <= set(first)
    assert first["eval/information_random"] == second["eval/information_random"]
    assert first["music/bound_random"] != second["music/bound_random"]
    found = trainer.evaluation.heldout(
        trainer.terms, trainer.update.weights(), trainer.evaluation.play(
            zero_policy, 5, added=random_actions(trainer.envs.spec)
        )
    )  # fmt: skip
    assert found["music/paid_heldout"] == second["music/paid_random"]


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("env_id", ["FetchPush-v4", "HandManipulateBlock-v1"])
def test_mujoco_tasks_go_on_bit_equal_too(env_id):
    config = dataclasses.replace(MUSIC, env_id=env_id, workers=1, rollouts=1, cycles=1)
    straight = trainer_of(config)
    straight.run_epoch(go_on)
    second = restored(config, saved(straight))
    for trainer in (straight, second):
        trainer.run_epoch(go_on)
    assert_same_state(straight, second)


@pytest.mark.thorough
def test_a_term_whose_weight_stays_zero_is_not_fed_nor_measured_even_if_it_is_alone():
    music = dataclasses.replace(SMALL_MUSIC, weight=((0.0, 1.0), (1.0, 0.0)))
    handed_over = paying(HER, TaskConfig(weight=((0.0, 0.0), (1.0, 1.0))), music)
    trainer = trainer_of(handed_over)
    first = trainer.run_epoch(go_on)
    state = saved(trainer)
    second = trainer.run_epoch(go_on)
    assert {"reward/music_mean", "music/bound", "reward/task_std"} < set(first)
    assert "music/bound_heldout" not in first  # evaluated at the end of the epoch, after its time
    assert not [name for name in second if "music" in name]
    assert second["reward/task_mean"] < 0.0 == first["reward/task_mean"]
    again = restored(handed_over, state)
    again.run_epoch(go_on)
    assert_same_state(trainer, again)
    metrics = trainer_of(with_fields(BASE, {"task.weight": ((0.0, 0.0),)})).run_epoch(go_on)
    assert metrics["reward/task_min"] == metrics["reward/task_max"] == 0.0


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["everything", "pearl"])
@pytest.mark.parametrize("parts", [2, 3])
def test_minibatches_that_are_looked_up_in_parts_change_no_bit(monkeypatch, name, parts):
    config = small_pearl() if name == "pearl" else ALL[name]
    whole = trainer_of(config)
    expected = whole.run_epoch(go_on)
    rows = config.updates * config.replay.batch_size
    monkeypatch.setattr(feeding, "_ROWS_AT_ONCE", rows / (parts - 0.5))
    other, taken = trainer_of(config), []
    take = other.update._take
    monkeypatch.setattr(
        other.update,
        "_take",
        lambda feed, *rest: (taken.append(len(feed.transitions.reward)), take(feed, *rest))[1],
    )
    found = other.run_epoch(go_on)
    assert taken == {2: [2, 1], 3: [1, 1, 1]}[parts] * config.cycles
    np.testing.assert_equal(other.shared(), whole.shared())
    for metric in set(found) - set(TIMES):
        assert found[metric] == expected[metric], metric


@pytest.mark.thorough
def test_going_back_to_the_start_visits_every_task_again():
    trainer = trainer_of(small_pearl())
    arrays, meta, _ = saved(trainer)
    trainer.run_cycle()
    first = trainer.counters.episodes
    trainer.load(arrays, meta)
    trainer.load_workers({0: [], 1: []})
    trainer.run_cycle()
    assert trainer.counters.episodes == first


def test_how_long_a_discriminator_still_rests_is_saved_and_checked():
    config = paying(BASE, dataclasses.replace(SMALL_SKILL, resume_rows=1000), skills=3)
    trainer, again = trainer_of(config), trainer_of(config)
    assert "terms" not in trainer.meta()
    trainer.forget()
    trainer.collect()
    arrays, meta, _ = saved(trainer)
    rows = meta["terms"]["skill"]["fresh_rows"]
    assert sum(rows) == 2 * 2 * STEPS
    again.load(arrays, meta)
    assert again.meta()["terms"] == meta["terms"]
    for wrong in (rows[1:], [-1, *rows[1:]], [0.5, *rows[1:]], [2**63, *rows[1:]], "many"):
        with pytest.raises(ValueError, match=r"skill.fresh_rows: expected counts of 3 skills"):
            again.load(arrays, meta | {"terms": {"skill": {"fresh_rows": wrong}}})
    with pytest.raises(ValueError, match="terms: expected counts"):
        again.load(arrays, meta | {"terms": [1]})
    del meta["terms"]  # as an older version saved it
    again.load(arrays, meta)
    assert "terms" not in again.meta()


@pytest.mark.parametrize("hold", [1.0, 5.0])
def test_actions_of_the_first_steps_are_held_too(hold):
    explores = ExplorationConfig(random_hold=hold)
    trainer = trainer_of(BASE, collect=CollectConfig(random_steps=1000), exploration=explores)
    trainer.collect()
    rows = trainer.replay.unsaved()
    taken = np.stack([rows[worker]["action"] for worker in (0, 1)])  # [W, R, T, A]
    generators = [stream(trainer.config.seed, "rollout/exploration", w, 0) for w in (0, 1)]
    if hold == 1.0:  # those that are drawn for all cycles
        drawn = perturbation(explores, generators, (STEPS, 2, taken.shape[-1])).uniform
        np.testing.assert_array_equal(np.moveaxis(drawn, 0, 1).reshape(taken.shape), taken)
    held = (taken[:, :, 1:] == taken[:, :, :-1]).all(axis=-1).mean()
    assert held == pytest.approx(1.0 - 1.0 / hold, abs=0.12)  # 0.037 is one deviation


def test_only_rewards_have_extremes_over_ranks():
    class Two:  # ranks with the same numbers
        max_in_place = staticmethod(np.asarray)
        sum_in_place = staticmethod(lambda values: 2.0 * values)

    given = {"reward/a_min": 1.0, "reward/a_max": 2.0, "mine/error_max": 3.0, "mine/a_min": 4.0}
    assert trainer_module.over_ranks(given, Two()) == {
        "reward/a_min": 1.0,
        "reward/a_max": 2.0,
        "mine/error_max": 6.0,
        "mine/a_min": 8.0,
    }
