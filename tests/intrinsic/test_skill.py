import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf import recipes
from music_tf.intrinsic.running import RunningAverage
from music_tf.intrinsic.skill import Skill
from music_tf.losses.prior import effective_skills, learned_prior
from music_tf.recipes.skills import SkillConfig
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.episodes import make_episodes
from tests.kit.terms import (
    context,
    filled_replay,
    first_update,
    gradient_of_reward,
    made_transition,
    train,
    weights_of,
)

SKILLS = 3


def skill(columns=(0, 2), scale=None, **config):
    settings = SkillConfig(hidden_sizes=(8,), normalize_inputs=scale is not None, **config)
    return Skill(settings, context(columns=columns, skills=SKILLS, scale=scale))


def replay():  # of two workers
    played = (make_episodes(first, 6, skills=SKILLS) for first in (0, 6))
    return filled_replay(*played, batch_size=16)


def constant_logits(*logits):  # weights with which the discriminator says the same of every state
    *rest, bias = weights_of(skill())["discriminator"]
    assert bias.shape == (SKILLS,)
    return {"discriminator": [tf.zeros_like(part) for part in rest] + [tf.constant(logits)]}


def separated(count, generator, shuffled=False):
    """Episodes whose every state lies near 3 z, z being their skill, in both components seen."""
    episodes = make_episodes(0, count, skills=SKILLS)
    places = 3.0 * episodes.skill.argmax(axis=-1)[:, None, None]
    observation = places + generator.normal(0.0, 0.2, episodes.observation.shape)
    labels = generator.permutation(episodes.skill) if shuffled else episodes.skill
    return episodes._replace(observation=observation.astype(np.float32), skill=labels)


@pytest.mark.parametrize("state", ["current", "next"])
@pytest.mark.parametrize("subtract_prior", [False, True])
def test_the_reward_is_the_log_likelihood_of_the_active_skill(state, subtract_prior):
    term = skill(state=state, subtract_prior=subtract_prior)
    weights, now = weights_of(term), first_update(sample_transitions(replay(), 2, 0))
    observed = (now.observation if state == "current" else now.next_observation).numpy()
    logits = term.networks[0].model(observed.reshape(-1, 4)[:, [0, 2]]).numpy().astype(np.float64)
    chosen = np.sum(logits * now.skill.numpy().reshape(-1, SKILLS), axis=-1)
    expected = chosen - np.log(np.sum(np.exp(logits - chosen[:, None]), axis=-1)) - chosen
    expected += math.log(SKILLS) if subtract_prior else 0.0
    found = term.reward(weights, now, {})
    assert found.shape == (2, 16)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-4, atol=1e-4)
    assert gradient_of_reward(term, now, {}) is None


@pytest.mark.parametrize("state", ["current", "next"])
def test_it_learns_from_states_of_its_own_choice_beside_their_skills(state):
    term, buffer = skill(state=state), replay()
    feed = term.feed(buffer, 3, 5)
    assert feed["state"].shape == (3, 2, 16, 2)
    own = sample_transitions(buffer, 3, 5, "skill/transitions")
    observed = own.observation if state == "current" else own.next_observation
    np.testing.assert_array_equal(feed["state"], observed[..., [0, 2]])
    np.testing.assert_array_equal(feed["skill"], own.skill)
    assert (own.observation != sample_transitions(buffer, 3, 5).observation).any()


def test_all_its_steps_may_learn_from_the_minibatch_of_the_agent():
    for times in (1, 2):
        term, buffer = skill(batch="shared", state="next", every=3, times=times), replay()
        assert (term.every, term.times) == (3, times)
        feed, agents = term.feed(buffer, 3 * times, 5), sample_transitions(buffer, 3, 5)
        seen = agents.next_observation[..., [0, 2]].repeat(times, axis=0)
        np.testing.assert_array_equal(feed["state"], seen)
        np.testing.assert_array_equal(feed["skill"], agents.skill.repeat(times, axis=0))


def test_the_loss_is_the_cross_entropy_and_accuracy_counts_hits_unless_it_is_frozen():
    term = skill()
    weights = weights_of(term)
    feed = first_update(term.feed(replay(), 1, 0))
    loss, metrics = term.loss(weights, feed)
    logits = term.networks[0].model(np.reshape(feed["state"], (-1, 2))).numpy()
    reference = tf.nn.softmax_cross_entropy_with_logits(np.reshape(feed["skill"], (-1, 3)), logits)
    np.testing.assert_allclose(loss, np.reshape(reference, (2, 16)).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(metrics["skill/log_likelihood"], -loss)
    hits = logits.argmax(axis=1) == np.reshape(feed["skill"], (-1, 3)).argmax(axis=1)
    np.testing.assert_allclose(metrics["skill/accuracy"], hits.reshape(2, 16).mean(axis=1))
    term = skill(train=False)
    assert term.feed(replay(), 1, 0) == {}
    assert (float(term.loss(weights_of(term), {})[0]), term.networks[0].learning_rate) == (0.0, 0.0)


@cases(
    ("config", "expected"),
    ({"clip": (0.0, math.inf), "subtract_prior": True, "scale": 1.0}, (0.0, 1.098612)),
    ({"clip": (0.0, math.inf), "subtract_prior": True, "scale": 2.0}, (0.0, 2.197225)),
    ({"clip": (0.0, 0.25), "subtract_prior": True}, (0.0, 0.25)),
    ({"clip": (-1.0, math.inf)}, (-1.0, 0.0)),
    ({"clip": (2.0, 3.0), "subtract_prior": True}, (2.0, 2.0)),  # in order all the same
)
def test_no_bound_is_above_what_certainty_pays(config, expected):
    term = Skill(SkillConfig(**config), context(columns=(0,), skills=SKILLS))
    assert term.mixing.range == pytest.approx(expected)


def test_losing_the_object_is_worth_what_a_guess_is_on_a_laptop():
    # `absorb` pays the lowest reward for ever after
    for name in ("sac_diayn", "sac_music_diayn"):
        config = recipes.resolve(name)
        settings = dataclasses.replace(config.rewards["skill"], normalize_inputs=False)
        assert (config.lost_object, settings.subtract_prior) == ("absorb", True)
        assert Skill(settings, context(columns=(0,), skills=SKILLS)).mixing.range[0] == 0.0


def test_normalised_inputs_are_centred_and_divided():
    scale = (np.float32([100.0, 200.0]), np.float32([50.0, 25.0]))
    batch = first_update(sample_transitions(replay(), 1, 0))
    observation = batch.observation.numpy()
    observation[..., [0, 2]] = (observation[..., [0, 2]] - scale[0]) / scale[1]
    term = skill()
    expected = term.reward(weights_of(term), batch._replace(observation=observation), {})
    found = skill(scale=scale).reward(weights_of(term), batch, {})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - term.reward(weights_of(term), batch, {})).max() > 1.0


@pytest.mark.thorough
def test_skills_that_lie_apart_are_soon_told_apart_and_those_without_a_trace_guessed():
    generator = np.random.default_rng(0)
    term = skill(state="next", learning_rate=1e-2)
    weights, losses = train(term, filled_replay(separated(60, generator), batch_size=16), 300)
    assert losses[-1] < 0.05
    seen = term.heldout(weights, separated(60, generator))
    assert seen["skill/accuracy_heldout"] > 0.98
    assert seen["skill/log_likelihood_heldout"] > -0.05
    generator = np.random.default_rng(0)
    term = skill(learning_rate=1e-2)
    untold = filled_replay(separated(300, generator, shuffled=True), batch_size=16)
    weights, _ = train(term, untold, 300)
    seen = term.heldout(weights, separated(300, generator, shuffled=True))
    assert seen["skill/accuracy_heldout"] == pytest.approx(1 / SKILLS, abs=0.08)
    assert seen["skill/log_likelihood_heldout"] <= -math.log(SKILLS) + 0.02


@pytest.mark.parametrize("state", ["current", "next"])
def test_held_out_steps_are_counted_as_far_as_episodes_go(state):
    # The discriminator always says skill 0. Episodes of 2, 5 and 1 steps with skills 0, 1 and 2:
    # two hits in eight steps.
    term = skill(state=state)
    episodes = make_episodes(0, 3, lengths=[2, 5, 1], skills=SKILLS)
    seen = term.heldout(constant_logits(2.0, 0.0, -1.0), episodes)
    assert seen["skill/accuracy_heldout"] == 2 / 8
    expected = (2 * -0.169846 + 5 * -2.169846 + 1 * -3.169846) / 8
    assert seen["skill/log_likelihood_heldout"] == pytest.approx(expected, abs=1e-5)
    earned = (2 * 0.928766 + 5 * -1.071234 + 1 * -2.071234) / 3  # log 3 more, by episode
    assert seen["skill/diversity_return"] == pytest.approx(earned, abs=1e-5)
    shown = term.histograms(constant_logits(2.0, 0.0, -1.0), episodes)
    assert shown["skill/log_likelihood_heldout/steps"].shape == (8,)
    assert shown["eval/return/skill_1"].tolist() == [episodes.reward[1].sum()]


def test_held_out_steps_look_at_the_state_of_the_reward_and_not_that_it_learns_from():
    term, episodes = skill(state="next"), separated(60, np.random.default_rng(0))
    weights = weights_of(term, 1)
    at_first = episodes.observation.copy()
    at_first[:, 0] = 99.0  # never a next state
    kept = term.heldout(weights, episodes)
    assert term.heldout(weights, episodes._replace(observation=at_first)) == kept
    at_first[:, 1] = 99.0
    assert term.heldout(weights, episodes._replace(observation=at_first)) != kept
    term, buffer = skill(state="next", trained_on="current", subtract_prior=True), replay()
    own = sample_transitions(buffer, 3, 5, "skill/transitions")
    np.testing.assert_array_equal(term.feed(buffer, 3, 5)["state"], own.observation[..., [0, 2]])
    after = first_update(own)
    same = skill(state="next", subtract_prior=True).reward(weights_of(term), after, {})
    np.testing.assert_array_equal(term.reward(weights_of(term), after, {}), same)
    assert term.inputs["discriminator"]["state"] == "current"


def test_the_prior_of_the_pytorch_code_has_its_offset():
    batch = first_update(sample_transitions(replay(), 1, 0))
    held = batch._replace(skill=tf.broadcast_to(tf.one_hot(0, SKILLS), batch.skill.shape))
    term = skill(subtract_prior=True, prior_offset=1e-6)
    found = term.reward(constant_logits(2.0, 0.0, -1.0), held, {})
    np.testing.assert_allclose(found, 0.928763, atol=1e-6)


def test_a_descriptor_that_is_missing_may_be_two_zeros_by_which_nothing_is_told():
    term = skill(columns=(), missing_descriptor="zeros", subtract_prior=True)
    feed = term.feed(replay(), 1, 0)
    assert feed["state"].shape == (1, 2, 16, 2)
    assert not feed["state"].any()
    assert "two zeros" in term.notice
    assert term.inputs["discriminator"]["blind"] is True
    known = skill(columns=(1,), missing_descriptor="zeros")
    assert known.feed(replay(), 1, 0)["state"].any()
    assert known.notice == ""


def test_a_learned_prior_is_the_softmax_of_mean_log_likelihoods():
    log_likelihood = np.array([-0.1, -2.0, -0.5])
    expected = np.exp(log_likelihood) / np.exp(log_likelihood).sum()
    np.testing.assert_allclose(learned_prior(log_likelihood - 1000.0), expected)
    assert effective_skills([0.75, 0.25, 0.0]) == pytest.approx(math.exp(0.5623351))
    term = skill(prior="learned", subtract_prior=True, prior_offset=0.0)
    np.testing.assert_allclose(term.prior(), 1 / 3)
    learned = {"skill/log_likelihood": -1.0}
    for number, (share, value) in enumerate(zip((0.5, 0.3, 0.2), log_likelihood, strict=True)):
        learned |= {f"skill/sum_{number}": share * value, f"skill/share_{number}": share}
    more = term.adapt(learned, 10)
    np.testing.assert_allclose(term.prior(), expected)
    assert more["skill/effective"] == pytest.approx(effective_skills(expected))
    assert learned.keys() == {"skill/log_likelihood"}
    batch = first_update(sample_transitions(replay(), 1, 0))
    uniform = skill(subtract_prior=False).reward(weights_of(term), batch, {}).numpy()
    feed = first_update(term.feed(replay(), 1, 0))
    found = term.reward(weights_of(term), batch, feed).numpy()
    chosen = batch.skill.numpy().argmax(axis=-1)
    np.testing.assert_allclose(found, uniform - np.log(expected)[chosen], atol=1e-5)


def test_the_gate_is_open_from_the_target_less_the_margin_on_and_its_share_is_logged():
    term = skill(target=10.0, margin=2.0)
    returns = tf.constant([[-1.0, 7.5, 8.0, 9.0], [7.0, 7.0, 7.0, 8.0]])
    batch = made_transition(episode_return=returns)
    np.testing.assert_array_equal(term.gate(batch), [[0, 0, 1, 1], [0, 0, 0, 1]])
    shares = term.measures(None, batch, {})["skill/gate_open"]
    np.testing.assert_allclose(shares, [2 / 4, 1 / 4])


def test_the_running_log_likelihood_goes_by_episodes_where_a_gate_has_a_target():
    term = skill()
    assert "skill/log_likelihood_running" not in term.adapt({"skill/log_likelihood": -2.0}, 9, 0)
    more = term.adapt({"skill/log_likelihood": -1.0}, 9, 3)
    assert more["skill/log_likelihood_running"] == -1.5
    again = skill()
    again.load(term.shared())
    for one in (term, again):
        more = one.adapt({"skill/log_likelihood": -0.5}, 9, 4)
        assert more["skill/log_likelihood_running"] == pytest.approx(0.99 * -1.5 - 0.005)
    for config in ({}, {"target": -math.inf, "margin": 1.0}):
        assert skill(**config).gate(None) is None
        assert skill(**config).measures(None, None, {}) == {}


def test_a_running_average_keeps_99_of_100_parts_after_each_episode():
    average = RunningAverage()
    assert average.follow(-3.0, 0) is None
    assert average.follow(-1.0, 4) == -2.0  # the mean over the updates by then
    assert average.follow(-1.0, 5) == pytest.approx(0.99 * -2.0 + 0.01 * -1.0)
    assert average.follow(5.0, 5) == pytest.approx(-1.99)
    several = average.follow(1.0, 7)  # two more episodes, with (5 + 1) / 2 each
    assert several == pytest.approx(0.99**2 * -1.99 + (1 - 0.99**2) * 3.0)


def test_without_replay_the_discriminator_waits_for_fresh_rows_and_skills_are_drawn_uniformly():
    term, buffer = skill(prior="learned", subtract_prior=True, resume_rows=10), replay()
    term.load({"scales/skill": np.array([[-0.5, -1.0, -2.0], [0.5, 0.5, 0.5]])})
    expected = learned_prior(np.array([-1.0, -2.0, -4.0]))
    np.testing.assert_allclose(term.prior(), expected)
    assert "learns" not in term.feed(buffer, 1, 0)
    term.forget()
    alike = skill(subtract_prior=True)  # rewards subtract the prior that skills are drawn from
    held, name = make_episodes(0, 6, skills=SKILLS), "skill/diversity_return"
    returns = [each.heldout(weights_of(each), held)[name] for each in (term, alike)]
    assert returns[0] == pytest.approx(returns[1], rel=1e-5)
    few = make_episodes(0, 3, lengths=[4, 5, 5], skills=SKILLS)
    for cycle in range(3):  # each skill has at least 10 rows after two cycles of both workers
        chances = expected if cycle == 2 else np.full(3, 1 / 3)
        np.testing.assert_allclose(term.prior(), chances)
        feed = first_update(term.feed(buffer, 1, 0))
        np.testing.assert_allclose(feed["log_prior"], [np.log(chances)] * 2, rtol=1e-6)
        np.testing.assert_array_equal(feed["learns"], [float(cycle == 2)] * 2)
        loss, _ = term.loss(weights_of(term), feed)
        assert (loss.numpy() > 0.0).all() == (cycle == 2)
        term.observe({0: few, 1: few}, 0)
    at_once = skill(resume_rows=0)
    at_once.forget()
    assert "learns" not in at_once.feed(buffer, 1, 0)
