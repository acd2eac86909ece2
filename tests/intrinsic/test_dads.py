import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.conditioning import ConditionConfig
from music_tf.errors import UsageError
from music_tf.intrinsic.dads import Dads
from music_tf.losses.skill_dynamics import skill_dynamics_reward
from music_tf.recipes.skills import DadsConfig
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.episodes import STEPS, make_episodes
from tests.kit.terms import (
    context,
    filled_replay,
    first_update,
    gradient_of_reward,
    train,
    weights_of,
)

SKILLS = 3


def dads(columns=(0, 2), total=np.asarray, kind="one_hot", **config):
    condition = ConditionConfig(kind=kind, size=SKILLS)
    made = context(columns=columns, skills=SKILLS)._replace(total=total, condition=condition)
    return Dads(DadsConfig(hidden_sizes=(16,), **config), made)


def parted(count, seed=0):
    """Episodes whose skill moves both components seen by skill - 1 a step, and a little noise."""
    episodes = make_episodes(0, count, skills=SKILLS)
    generator = np.random.default_rng(seed)
    pace = (episodes.skill.argmax(axis=-1) - 1.0)[:, None, None]
    steps = np.arange(STEPS + 1)[None, :, None]
    noise = generator.normal(0.0, 0.05, episodes.observation.shape)
    return episodes._replace(observation=(pace * steps + noise).astype(np.float32))


def test_the_reward_is_finite_however_far_apart_densities_are():
    apart = tf.constant([[0.0, -1e4, 1e4]])
    found = [float(skill_dynamics_reward(apart, tf.one_hot([n], 3))[0]) for n in range(3)]
    assert np.isfinite(found).all()
    assert found[1] < -48.0


def test_moments_are_those_of_all_rows_with_a_unit_before_them_on_any_number_of_ranks():
    rows = np.random.default_rng(0).normal(3.0, 2.0, (40, 2))
    whole, halves = dads(), dads()
    whole._count(rows)
    for part in np.split(rows, [7, 8, 31]):
        halves._count(part)
    mean = rows.mean(axis=0)
    for term in (whole, halves):
        np.testing.assert_allclose(term._moments.mean, mean)
        squares = np.square(rows - mean).sum(axis=0)
        np.testing.assert_allclose(term._moments.squares - 1.0, squares, rtol=0.05)
        np.testing.assert_allclose(term._moments.deviation, np.sqrt((squares + 1) / 41), rtol=0.03)
    ranks = dads(total=lambda array: 2.0 * array)  # two that see the same
    ranks._count(rows)
    np.testing.assert_allclose(ranks._moments.mean, mean)
    np.testing.assert_allclose(ranks._moments.steps, 80)


def test_evaluation_counts_nothing_and_a_loaded_term_goes_on():
    term, episodes = dads(), parted(6)
    term.observe({0: episodes}, 0)
    before = term.shared()["scales/dads"]
    assert before[-1] == episodes.length.sum()
    term.heldout(weights_of(term), episodes)
    term.feed(filled_replay(episodes), 2, 0)
    np.testing.assert_array_equal(term.shared()["scales/dads"], before)
    again = dads()
    again.load(term.shared())
    np.testing.assert_array_equal(again.shared()["scales/dads"], before)


def test_steps_after_an_end_count_in_no_moment_and_ends_in_no_loss():
    term = dads(normalize_target=False)
    term.observe({0: make_episodes(0, 2, lengths=[2, 5], skills=SKILLS)}, 0)
    assert term._moments.steps == 7
    replay = filled_replay(parted(6))
    feed = first_update(term.feed(replay, 1, 0))
    replay.discount = 0.0  # which tells no end
    assert np.all(first_update(term.feed(replay, 1, 0))["counted"] == 1.0)
    nothing = {**feed, "counted": tf.zeros_like(feed["counted"])}
    assert float(term.loss(weights_of(term), nothing)[0][0]) == 0.0


@pytest.mark.parametrize("omit", [0, 1, 2])
def test_skills_that_move_apart_are_soon_predictable(omit):
    term = dads(omit=omit, learning_rate=1e-2)
    term.observe({0: parted(60)}, 0)
    weights, losses = train(term, filled_replay(parted(60)), 200)
    assert losses[-1] < losses[0]
    seen = term.heldout(weights, parted(30, seed=1))["dads/reward_heldout"]
    assert 0.3 < seen <= math.log(SKILLS)
    early = parted(30, seed=1)
    early.length[:] = 2
    cut = early._replace(observation=np.concatenate([early.observation[:, :3]] * 2, axis=1))
    judged = [term.heldout(weights, one)["dads/reward_heldout"] for one in (early, cut)]
    assert judged[0] == pytest.approx(judged[1])  # steps after an end do not count
    alike = parted(30, seed=1)
    alike = alike._replace(skill=np.roll(alike.skill, 1, axis=0))
    assert term.heldout(weights, alike)["dads/reward_heldout"] < 0.0


@cases(
    ("omit", "column", "alike"),
    *((0, 0, False), (1, 0, True), (1, 2, False), (2, 2, True), ("all", 0, True), ("all", 2, True)),
)
def test_omitted_columns_do_not_change_the_reward(omit, column, alike):
    term, batch = dads(omit=omit), first_update(sample_transitions(filled_replay(parted(6)), 1, 0))
    away = 5.0 * np.eye(4, dtype=np.float32)[column]  # the change stays
    states = batch.observation + away, batch.next_observation + away
    elsewhere = batch._replace(observation=states[0], next_observation=states[1])
    feed, weights = term.steady_feed(1), weights_of(term, 1)
    rewards = [term.reward(weights, each, feed).numpy() for each in (batch, elsewhere)]
    assert np.allclose(*rewards, atol=1e-3) == alike
    width = {"all": 2}.get(omit, omit)
    assert term.inputs == {"dynamics": {"components": [0, 2], "omit": width}}
    assert term.networks[0].model.trainable_variables[0].shape[0] == SKILLS + 2 - width


def test_no_gradient_passes_and_omitting_more_columns_than_exist_is_refused():
    term, batch = dads(), first_update(sample_transitions(filled_replay(parted(6)), 1, 0))
    assert gradient_of_reward(term, batch, term.steady_feed(1)) is None
    with pytest.raises(UsageError, match=r"(?s)expected at most the 2 .* got 3.*--dads.omit 2"):
        dads(omit=3)


@pytest.mark.parametrize("kind", ["gaussian", "sphere", "box"])
def test_a_continuous_condition_is_compared_with_random_ones(kind):
    term, episodes = dads(kind=kind, samples=7), parted(6)
    assert term.mixing.range == (-math.inf, pytest.approx(math.log(8)))
    feed = term.feed(filled_replay(episodes), 4, 0)
    assert feed["others"].shape == (4, 1, 7, SKILLS)
    assert (feed["others"][0] != feed["others"][1]).any()
    if kind == "sphere":
        np.testing.assert_allclose(np.linalg.norm(feed["others"], axis=-1), 1.0, rtol=1e-6)
    weights, now = weights_of(term, 1), first_update(feed)
    batch = first_update(sample_transitions(filled_replay(episodes), 1, 0))
    found = term.reward(weights, batch, now).numpy()
    before = tf.gather(batch.observation, [0, 2], axis=-1)
    change = term._normalized(tf.gather(batch.next_observation, [0, 2], axis=-1) - before, now)
    densities = [
        term._log_density(weights, before, tf.zeros_like(batch.skill) + other, change).numpy()
        for other in (batch.skill, *now["others"][0])
    ]
    better = np.exp(np.clip(np.array(densities) - densities[0], -50.0, 50.0))
    expected = math.log(8) - np.log(better.sum(axis=0))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    assert term.heldout(weights, episodes) == term.heldout(weights, episodes)  # with the same ones
    assert term.steady_feed(5)["others"].shape == (5, 7, SKILLS)
