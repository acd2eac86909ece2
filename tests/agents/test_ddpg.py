import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.ddpg import Ddpg
from music_tf.config.agents import DdpgConfig
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case
from tests.kit.cases import cases

FREE = (-math.inf, math.inf)


def case_of(bounds=FREE, **config):
    config = DdpgConfig(**{"hidden_sizes": (8, 8), "action_l2": 0.7, **config})
    return Case(Ddpg(config, INPUTS, ACTIONS, bounds, np.random.default_rng(0)))


def policy(case, weights, inputs):
    rows = case.network("actor")(weights["actor"], tf.reshape(inputs, [-1, INPUTS]))
    return tf.reshape(rows, [WORKERS, ROWS, ACTIONS])


def target(case):
    batch = case.batch
    action = policy(case, case.targets, batch.next_inputs)
    lowest = tf.reduce_min(case.q(case.targets, batch.next_inputs, action), axis=0)
    return batch.reward + batch.discount * lowest


def test_targets_are_bounded():
    case = case_of(bounds=(-0.25, 0.25))
    clipped = np.clip(target(case), -0.25, 0.25)
    assert not np.array_equal(clipped, target(case))
    found = case.losses().metrics["train/critic_loss"]
    np.testing.assert_allclose(found, case.critic_loss(clipped), rtol=1e-5)
    case.batch = case.batch._replace(bounds=(tf.constant(-0.5), tf.constant(0.125)))  # of today
    found = case.losses().metrics["train/critic_loss"]
    expected = case.critic_loss(np.clip(target(case), -0.5, 0.125))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


DRAWN = [3, 1]


@cases(
    ("rule", "of_target", "of_actor"),
    ("lowest", np.min, np.min),
    ("mean", np.mean, np.mean),
    (2, lambda q, axis: q[DRAWN].min(axis), np.mean),
)
def test_targets_take_the_lowest_critic_that_of_a_drawn_pair_or_the_mean(rule, of_target, of_actor):
    case = case_of(critics=4, target_critics=rule)
    if rule == 2:
        case.noise["target_critics"] = tf.constant(DRAWN)
    batch, metrics = case.batch, case.losses().metrics
    action = policy(case, case.targets, batch.next_inputs)
    later = of_target(case.q(case.targets, batch.next_inputs, action).numpy(), axis=0)
    expected = case.critic_loss(batch.reward + batch.discount * later)
    np.testing.assert_allclose(metrics["train/critic_loss"], expected, rtol=1e-5)
    action = policy(case, case.weights, batch.inputs)
    worth = of_actor(case.q(case.weights, batch.inputs, action).numpy(), axis=0)
    expected = 0.7 * np.square(action).mean(axis=(1, 2)) - worth.mean(axis=1)
    np.testing.assert_allclose(metrics["train/actor_loss"], expected, rtol=1e-4)


def drawn(seed, cycle, rule=2):
    config = DdpgConfig(critics=4, target_critics=rule, hidden_sizes=(2,))
    learner = Ddpg(config, INPUTS, ACTIONS, FREE, np.random.default_rng(seed))
    return learner.feed(None, None, 600, cycle).get("target_critics")


def test_each_update_has_a_pair_of_critics_that_follows_from_seed_and_cycle():
    pairs = drawn(0, 5)
    assert (pairs.shape, pairs.dtype) == ((600, 2), np.int32)
    times = np.unique(np.sort(pairs), axis=0, return_counts=True)[1]
    assert len(times) == 6  # each pair of different critics, all with the same chance
    assert np.abs(times - 100).max() < 40
    np.testing.assert_array_equal(pairs, drawn(0, 5))
    assert all((pairs != other).any() for other in (drawn(0, 6), drawn(1, 5)))
    assert drawn(0, 5, "lowest") is None


@pytest.mark.parametrize("critics", [1, 2])
def test_each_network_gets_the_gradient_of_its_own_loss_alone(critics):
    case = case_of(critics=critics)
    batch, fixed, y = case.batch, case.weights, target(case)

    def actor_loss(weights):
        action = policy(case, weights, batch.inputs)
        lowest = tf.reduce_min(case.q(fixed, batch.inputs, action), axis=0)
        return -tf.reduce_mean(lowest, 1) + 0.7 * tf.reduce_mean(tf.square(action), [1, 2])

    found, on_targets = case.gradients()
    assert on_targets is None
    of_critic = case.gradient_of(lambda weights: case.critic_loss(y, weights))
    of_actor = case.gradient_of(actor_loss)
    for index in range(critics):
        name = f"critic_{index}"
        np.testing.assert_allclose(found[name], of_critic[name], atol=1e-6)
    np.testing.assert_allclose(found["actor"], of_actor["actor"], atol=1e-6)
    assert np.abs(found["actor"]).max() > 1e-3


def test_everything_has_a_target_and_a_rate_of_its_own_and_critics_start_different():
    learner = case_of(critics=2, actor_learning_rate=0.1, critic_learning_rate=0.2).learner
    rates = [(network.name, network.learning_rate) for network in learner.networks]
    assert rates == [("actor", 0.1), ("critic_0", 0.2), ("critic_1", 0.2)]
    assert [network.name for network in learner.target_networks] == [name for name, _ in rates]
    assert (learner.networks[1].initial != learner.networks[2].initial).any()
