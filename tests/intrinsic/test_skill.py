import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.schema import ReplayConfig, SkillConfig
from music_tf.intrinsic.skill import Skill
from music_tf.networks.parameters import Layout
from music_tf.replay.buffer import ReplayBuffer, Shard
from tests.replay.episodes import SPEC, STEPS, goal_reward, make_episodes

SKILLS = 3


def skill(columns=(0, 2), **config):
    return Skill(SkillConfig(hidden_sizes=(8,), **config), columns, SKILLS, seed=0)


def replay(workers=2):
    shards = {}
    for worker in range(workers):
        shards[worker] = Shard(SPEC, SKILLS, ReplayConfig(capacity=6 * STEPS))
        shards[worker].add(make_episodes(6 * worker, 6, skills=SKILLS), np.random.default_rng(0))
    return ReplayBuffer(shards, ReplayConfig(batch_size=16), goal_reward, 0.9, seed=1)


def weights_of(term):
    return Layout(term.networks).split(tf.constant(Layout(term.networks).initial()))


def first_update(values):
    return tf.nest.map_structure(lambda array: tf.constant(array[0]), values)


@pytest.mark.parametrize("state", ["current", "next"])
@pytest.mark.parametrize("subtract_prior", [False, True])
def test_the_reward_is_the_log_likelihood_of_the_active_skill(state, subtract_prior):
    term, batch = (
        skill(state=state, subtract_prior=subtract_prior),
        replay().sample_transitions(2, 0),
    )
    weights, now = weights_of(term), first_update(batch)
    observed = (now.observation if state == "current" else now.next_observation).numpy()
    logits = term.networks[0].model(observed.reshape(-1, 4)[:, [0, 2]]).numpy().astype(np.float64)
    chosen = np.sum(logits * now.skill.numpy().reshape(-1, SKILLS), axis=-1)
    expected = chosen - np.log(np.sum(np.exp(logits - chosen[:, None]), axis=-1)) - chosen
    expected += math.log(SKILLS) if subtract_prior else 0.0
    found = term.reward(weights, now, {})
    assert found.shape == (2, 16)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-4, atol=1e-4)


def test_no_gradient_passes_through_the_reward():
    term = skill()
    flat = tf.Variable(Layout(term.networks).initial())
    with tf.GradientTape() as tape:
        weights = Layout(term.networks).split(tf.identity(flat))
        reward = term.reward(weights, first_update(replay().sample_transitions(1, 0)), {})
    assert tape.gradient(reward, flat) is None


@pytest.mark.parametrize("state", ["current", "next"])
def test_it_learns_from_states_of_its_own_choice_beside_their_skills(state):
    term, buffer = skill(state=state), replay()
    feed = term.feed(buffer, 3, 5)
    assert feed["state"].shape == (3, 2, 16, 2)
    own = buffer.sample_transitions(3, 5, "skill/transitions")
    observed = own.observation if state == "current" else own.next_observation
    np.testing.assert_array_equal(feed["state"], observed[..., [0, 2]])
    np.testing.assert_array_equal(feed["skill"], own.skill)
    policy_batch = buffer.sample_transitions(3, 5)
    assert (own.time != policy_batch.time).any()


def test_the_loss_is_the_cross_entropy_and_accuracy_counts_hits():
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


def test_a_frozen_discriminator_has_no_loss_and_no_rate():
    term = skill(train=False)
    assert term.feed(replay(), 1, 0) == {}
    assert float(term.loss(weights_of(term), {})[0]) == 0.0
    assert term.networks[0].learning_rate == 0.0
