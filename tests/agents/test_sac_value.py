import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.sac_value import SacValue
from music_tf.config.agents import SacValueConfig
from music_tf.config.settings import Config, ExplorationConfig
from music_tf.distributions import sample_tanh_gaussian
from music_tf.errors import UsageError
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case

FREE = (-math.inf, math.inf)


def case_of(bounds=FREE, **config):
    defaults = {"hidden_sizes": (8, 8), "action_l2": 0.0, "critics": 2}
    config = SacValueConfig(**{**defaults, **config})
    return Case(SacValue(config, INPUTS, ACTIONS, bounds, np.random.default_rng(0)))


def drawn(case, weights):
    rows = tf.reshape(case.batch.inputs, [-1, INPUTS])
    parts = (tf.reshape(part, [WORKERS, ROWS, ACTIONS]) for part in network(case, weights, rows))
    return sample_tanh_gaussian(*parts, case.noise["policy"])


def network(case, weights, rows, name="actor"):
    return case.network(name)(weights[name], rows)


def state_value(case, weights, inputs):
    return tf.reshape(
        network(case, weights, tf.reshape(inputs, [-1, INPUTS]), "value"), [WORKERS, ROWS]
    )


def parts_of(case):  # temperature, TD target, and target of the state value, from the Keras models
    alpha = math.exp(float(case.weights["log_temperature"][0]))
    batch, chosen = case.batch, drawn(case, case.weights)
    y_q = batch.reward + batch.discount * state_value(case, case.targets, batch.next_inputs)
    lowest = tf.reduce_min(case.q(case.weights, batch.inputs, chosen.action), axis=0)
    return alpha, y_q, lowest - alpha * chosen.log_density


def value_loss(case, weights, target):
    return tf.reduce_mean(tf.square(state_value(case, weights, case.batch.inputs) - target), axis=1)


@pytest.mark.parametrize("temperature", [0.1, 0.7])
def test_critics_learn_from_the_slow_state_value_and_that_from_the_critics(temperature):
    case = case_of(temperature=temperature)
    alpha, y_q, y_v = parts_of(case)
    metrics = case.losses().metrics
    np.testing.assert_allclose(metrics["train/critic_loss"], case.critic_loss(y_q), rtol=1e-4)
    expected = value_loss(case, case.weights, y_v)
    np.testing.assert_allclose(metrics["train/value_loss"], expected, rtol=1e-4)
    np.testing.assert_allclose(metrics["train/temperature"], [alpha] * WORKERS, rtol=1e-6)


def test_errors_of_one_critic_and_of_the_state_value_may_be_halved():
    case = case_of(critics=1, critic_loss="half_mean")
    _, y_q, y_v = parts_of(case)
    metrics = case.losses().metrics
    error = case.q(case.weights, case.batch.inputs, case.batch.action)[0] - y_q
    halved = 0.5 * tf.reduce_mean(tf.square(error), axis=1)
    np.testing.assert_allclose(metrics["train/critic_loss"], halved, rtol=1e-4)
    expected = 0.5 * value_loss(case, case.weights, y_v)
    np.testing.assert_allclose(metrics["train/value_loss"], expected, rtol=1e-4)


def test_inputs_of_the_critics_alone_have_a_gradient_in_what_they_see():
    case = case_of()
    seen = tf.Variable(case.batch.inputs + 0.5)
    _, y_q, y_v = parts_of(case)
    with tf.GradientTape() as tape:
        batch = case.batch._replace(critic_inputs=seen)
        losses = case.learner.losses(
            case.weights, case.targets, batch, case.noise, tf.constant(0.0)
        )
        total = tf.reduce_sum(losses.total)
    gradient = tape.gradient(total, seen)
    with tf.GradientTape() as tape:
        q = case.q(case.weights, seen, case.batch.action)
        expected = tf.reduce_sum(tf.reduce_mean(tf.square(q - y_q[None]), axis=-1))
    np.testing.assert_allclose(gradient, tape.gradient(expected, seen), atol=1e-6)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(
        losses.metrics["train/value_loss"], value_loss(case, case.weights, y_v), rtol=1e-4
    )


def test_the_temperature_is_fixed_unless_it_is_learned():
    case = case_of()
    assert case.gradients()[0]["log_temperature"].tolist() == [0.0]
    assert case.network("log_temperature").learning_rate == 0.0
    assert "train/temperature_loss" not in case.losses().metrics
    case = case_of(learn_temperature=True, target_entropy_per_action=-2.0)
    alpha, *_ = parts_of(case)
    gap = drawn(case, case.weights).log_density.numpy().mean(axis=1) - 2.0 * ACTIONS
    by_network, on_targets = case.gradients()
    np.testing.assert_allclose(by_network["log_temperature"], [-alpha * gap.sum()], rtol=1e-4)
    assert on_targets is None


def test_the_state_value_alone_has_a_slow_copy_and_the_sizes_of_the_critics():
    learner = case_of(critic_sizes=(5,)).learner
    assert [network.name for network in learner.target_networks] == ["value"]
    names = ["actor", "critic_0", "critic_1", "value", "log_temperature"]
    assert [network.name for network in learner.networks] == names
    assert learner.networks[3].shapes[0] == (INPUTS, 5)


def test_the_td_target_is_bounded_as_asked_but_not_by_the_rewards():
    case = case_of(bounds=(0.1, 0.2))
    _, y_q, _ = parts_of(case)
    expected = case.critic_loss(tf.clip_by_value(y_q, 0.1, 0.2))
    np.testing.assert_allclose(case.losses().metrics["train/critic_loss"], expected, rtol=1e-4)
    with pytest.raises(UsageError, match=r"agent\.return_clip: .auto. follows from the rewards"):
        SacValueConfig(return_clip="auto")
    Config(agent=SacValueConfig(), exploration=ExplorationConfig(sample=True))


def test_noise_is_drawn_for_each_worker_from_its_own_generator():
    draws = case_of().learner.draws
    both = draws([np.random.default_rng(1), np.random.default_rng(2)], 3, 4)["policy"]
    alone = draws([np.random.default_rng(2)], 3, 4)["policy"]
    assert both.shape == (3, 2, 4, ACTIONS)
    np.testing.assert_array_equal(both[:, 1], alone[:, 0])
