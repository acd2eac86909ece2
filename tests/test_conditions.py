"""Conditions: how they are drawn, shared out, refused, and kept in replay as they acted."""

import dataclasses
import json

import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.settings import CollectConfig, Config, EvaluationConfig, ReplayConfig
from music_tf.randomness import stream
from music_tf.recipes.skills import DadsConfig, SkillConfig
from music_tf.rollout import ConditionSampler
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.drawn import sample_transitions
from tests.kit.small import BASE, LEARNED_PRIOR, go_on, paying, trainer_of


def drawn(config, count, seed=0):  # conditions of many episodes of one worker
    return ConditionSampler(config, 3).begin_episodes(np.random.default_rng(seed), np.arange(count))


def test_skills_are_drawn_with_equal_chances_and_are_as_many_as_conditions_have_numbers():
    skills = drawn(Config(skills=5), 1000).skills
    assert (skills.sum(axis=1) == 1.0).all()
    # chi-square with 4 degrees of freedom is above 18.5 once in a thousand times
    assert ((skills.sum(axis=0) - 200.0) ** 2 / 200.0).sum() < 18.5
    sized = Config(condition=ConditionConfig(size=5))
    np.testing.assert_array_equal(drawn(sized, 50).skills, drawn(Config(skills=5), 50).skills)
    assert sized.acting_skills == (0, 1, 2, 3, 4)


def test_a_pinned_skill_acts_in_every_episode_and_changes_no_other_draw():
    free, pinned = (drawn(Config(skills=5, pinned_skill=pin), 6) for pin in (None, 3))
    assert (pinned.skills.argmax(axis=1) == 3).all()
    assert free.goals is None
    np.testing.assert_array_equal(free.seeds, pinned.seeds)


@cases(
    ("kind", "mean_square"),
    ("gaussian", 1.0),
    ("sphere", 1.0 / 4.0),
    ("ball", 1.0 / 12.0),
    ("box", 1.0 / 3.0),
)
def test_continuous_conditions_come_from_their_prior(kind, mean_square):
    skills = drawn(Config(condition=ConditionConfig(kind=kind, size=4)), 20_000).skills
    assert (skills.shape, skills.dtype) == ((20_000, 4), np.float32)
    np.testing.assert_allclose(skills.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(np.cov(skills.T), mean_square * np.eye(4), atol=0.03)
    if kind == "sphere":
        np.testing.assert_allclose(np.linalg.norm(skills, axis=1), 1.0, rtol=1e-6)
    if kind == "ball":
        shares = np.histogram(np.linalg.norm(skills, axis=1), 5, (0.0, 1.0))[0] / len(skills)
        np.testing.assert_allclose(shares, 0.2, atol=0.02)
    assert kind == "gaussian" or np.abs(skills).max() <= 1.0
    ends = drawn(Config(condition=ConditionConfig(kind="sphere", size=1)), 200).skills
    assert (sorted(set(ends.ravel().tolist())), abs(ends.mean()) < 0.25) == ([-1.0, 1.0], True)


def test_conditions_of_two_objects_move_one_of_them():
    of_two = ConditionConfig(kind="ball", size=6, groups=2)
    skills = drawn(Config(condition=of_two), 20_000).skills
    lengths = np.linalg.norm(skills.reshape(-1, 2, 3), axis=-1)
    moved = lengths > 0.0
    np.testing.assert_array_equal(moved.sum(axis=1), 1)
    np.testing.assert_allclose(moved.mean(axis=0), 0.5, atol=0.02)
    # uniform lengths U in three dimensions: E[U^2] / 3 = 1/9 a coordinate, half of the time
    np.testing.assert_allclose(np.cov(skills.T), np.eye(6) / 18.0, atol=0.01)
    plain = ConditionConfig(kind="ball", size=6)
    np.testing.assert_array_equal(
        *(
            drawn(Config(condition=each), 9).skills
            for each in (plain, dataclasses.replace(plain, groups=1))
        )
    )


def over_workers(config, cycle):
    """Skills [workers, rollouts] of a cycle, as one rank would find them that has them all."""
    sampler = ConditionSampler(config, 3)
    sampler.begin_cycle(cycle)
    envs = np.arange(config.workers * config.rollouts).reshape(config.workers, -1)
    found = [
        sampler.begin_episodes(stream(config.seed, "test", worker, cycle), own).skills
        for worker, own in enumerate(envs)
    ]
    return np.argmax(found, axis=-1)


def shared(sampler, **changes):
    condition = ConditionConfig(sampler=sampler)
    return Config(**{"workers": 5, "rollouts": 3, "condition": condition, "skills": 5, **changes})


def test_tiled_each_environment_keeps_its_skill():
    expected = np.arange(15).reshape(5, 3) % 5
    for cycle in range(3):
        np.testing.assert_array_equal(over_workers(shared("tiled"), cycle), expected)


@pytest.mark.parametrize(("skills", "least", "most"), [(5, 3, 3), (4, 3, 4), (20, 0, 1)])
def test_stratified_skills_have_even_shares_of_a_cycle_over_all_workers(skills, least, most):
    cycles = [over_workers(shared("stratified", skills=skills), cycle) for cycle in range(400)]
    for found in cycles:
        shares = np.bincount(found.ravel(), minlength=skills)
        assert (shares.min(), shares.max()) == (least, most)
    of_one = np.bincount([found[2, 1] for found in cycles], minlength=skills)
    assert of_one.min() > 0  # an environment gets each of them some time


def test_stratified_steps_deal_each_worker_whole_decks_until_the_epoch_ends():
    config = shared("stratified", collect=CollectConfig(steps=10))
    sampler, generator = ConditionSampler(config, 3), np.random.default_rng(0)

    def dealt(count, env):
        one = (sampler.begin_episodes(generator, np.array([env])) for _ in range(count))
        return [int(conditions.skills.argmax()) for conditions in one]

    first, other = dealt(3, 0), dealt(5, 4)  # environments of workers 0 and 1
    sampler.begin_cycle(1)
    assert sorted(first + dealt(2, 2)) == sorted(other) == [0, 1, 2, 3, 4]
    decks = []
    for _ in range(2):
        dealt(2, 0)
        sampler.begin_epoch()
        decks.append(sorted(dealt(5, 0)))
    assert decks == [[0, 1, 2, 3, 4]] * 2


CHANGING = dataclasses.replace(
    BASE,
    env_id=COUNTING,
    collect=CollectConfig(steps=7),
    replay=ReplayConfig(batch_size=32, capacity=1000),
    evaluation=EvaluationConfig(every=10),
    condition=ConditionConfig(kind="gaussian", size=2, every=3),
)


def test_replay_keeps_conditions_as_they_acted_and_learns_from_them():
    trainer, seen = trainer_of(CHANGING), {}
    policy_inputs = trainer.snapshot

    def noting():
        """A snapshot that notes under which condition each state of each seed was acted on."""
        snapshot = policy_inputs()

        class Noting(type(snapshot)):
            def act(self, observation, goal, skill, noise):
                for state, one in zip(observation, skill, strict=True):
                    seen[tuple(state)] = one.copy()
                return super().act(observation, goal, skill, noise)

        return Noting(*snapshot)

    trainer.snapshot = noting
    assert np.isfinite(list(trainer.run_epoch(go_on).values())).all()
    batch = sample_transitions(trainer.replay, 200, 0)
    assert len(np.unique(batch.skill[..., 0])) > 8
    states = batch.observation.reshape(-1, 2)
    for state, skill in zip(states, batch.skill.reshape(-1, 2), strict=True):
        np.testing.assert_array_equal(skill, seen[tuple(state)])
    # every third step of an episode another one acts: 0 to 2, 3 to 5, 6 and 7
    acted = {}
    for (seed, step), skill in seen.items():
        acted.setdefault((seed, step // 3), set()).add(tuple(skill.tolist()))
    assert all(len(found) == 1 for found in acted.values())
    assert len(set().union(*acted.values())) == len(acted)


@pytest.mark.parametrize("sampler", ["tiled", "stratified"])
def test_evenly_assigned_skills_train_and_are_recognised(sampler):
    config = paying(BASE, SkillConfig(hidden_sizes=(8,)), skills=4)
    condition = ConditionConfig(sampler=sampler)
    trainer = trainer_of(config, condition=condition)
    for _ in range(2):
        trainer.run_epoch(go_on)
    for shard in trainer.replay.shards.values():
        assert shard.size == 8
    kept = [shard.arrays["skill"][:8].argmax(-1) for shard in trainer.replay.shards.values()]
    for cycle in np.split(np.array(kept), 4, axis=1):  # [workers, rollouts]
        assert sorted(cycle.ravel().tolist()) == [0, 1, 2, 3]


def test_a_learned_prior_drives_the_skills_that_are_drawn():
    sampler = ConditionSampler(Config(skills=3), 0)
    sampler.prior = np.array([0.7, 0.3, 0.0])
    chosen = sampler.begin_episodes(np.random.default_rng(0), np.arange(10_000)).skills
    np.testing.assert_allclose(chosen.mean(axis=0), [0.7, 0.3, 0.0], atol=0.02)


def test_a_run_draws_skills_as_its_discriminator_knows_them():
    trainer = trainer_of(LEARNED_PRIOR)
    metrics = trainer.run_epoch(go_on)
    assert 1.0 < metrics["skill/effective"] < 4.0
    assert not any("share" in name or "sum_" in name for name in metrics)
    trainer.collect()
    prior = trainer.collector.sampler.prior
    np.testing.assert_allclose(prior, trainer.terms[0].prior(), rtol=1e-6)  # sent as float32
    assert prior.sum() == pytest.approx(1.0, abs=1e-12)
    assert prior.std() > 0.0
    again = trainer_of(LEARNED_PRIOR)
    again.load(trainer.shared(), json.loads(json.dumps(trainer.meta())))
    np.testing.assert_array_equal(again.terms[0].prior(), trainer.terms[0].prior())


OF_DENSITY = SkillConfig(hidden_sizes=(8,), subtract_prior=True, scale=1.0, clip=(-50.0, 50.0))
OF_CONSEQUENCES = DadsConfig(hidden_sizes=(8,), omit=1, samples=4, clip=(-50.0, 50.0))


@pytest.mark.thorough
@cases(
    ("term", "kind", "metrics"),
    *(
        (OF_DENSITY, kind, ("skill/log_likelihood_heldout", "reward/skill_mean"))
        for kind in ("gaussian", "sphere", "box")
    ),
    (OF_CONSEQUENCES, "sphere", ("dads/log_density", "dads/reward_heldout")),
)
def test_continuous_skills_are_told_apart_by_a_density_or_their_consequences(term, kind, metrics):
    trainer = trainer_of(paying(BASE, term, condition=ConditionConfig(kind=kind, size=3)))
    found = trainer.run_epoch(go_on)
    assert np.isfinite([found[name] for name in metrics]).all()
    assert "skill/accuracy" not in found
