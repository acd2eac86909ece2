import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.discrete_sac import DiscreteSac
from music_tf.config.agents import DiscreteSacConfig
from music_tf.errors import UsageError
from music_tf.losses.discrete import choice_entropy, choice_loss, soft_value
from music_tf.networks.acting import ACTORS, actor_shapes
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case, gradients

LOG_POLICY = tf.math.log([[[0.25, 0.75]]])
Q = tf.constant([[[[1.0, 2.0]]], [[[2.0, 1.5]]]])
ALPHA = tf.constant(0.1)
VALUE = 0.25 * (1.0 + 0.1386294) + 0.75 * (1.5 + 0.0287682)
"""Of the lower of two critics, (1, 1.5), with log pi (-1.386294, -0.287682) at alpha 0.1."""


def test_the_value_is_an_exact_expectation_and_the_entropy_of_three_to_one_is_known():
    assert pytest.approx(1.4312335) == VALUE
    np.testing.assert_allclose(soft_value(Q, LOG_POLICY, ALPHA), [[VALUE]], rtol=1e-6)
    np.testing.assert_allclose(choice_entropy(LOG_POLICY), [[0.5623351]], rtol=1e-6)
    np.testing.assert_allclose(choice_entropy(tf.math.log([[[0.25] * 4]])), [[math.log(4)]], 1e-6)


def test_the_policy_loss_is_minus_the_value_and_leaves_the_critics_alone():
    np.testing.assert_allclose(choice_loss(Q, LOG_POLICY, ALPHA), [-VALUE], rtol=1e-6)
    _, (by_q, by_policy, by_alpha) = gradients(choice_loss, Q, LOG_POLICY, ALPHA)
    assert by_q is None
    assert by_alpha is None
    # d/dx sum e^x (alpha x - q) = e^x (alpha x - q + alpha)
    expected = [0.25 * (-0.1386294 - 1.0 + 0.1), 0.75 * (-0.0287682 - 1.5 + 0.1)]
    np.testing.assert_allclose(by_policy[0, 0], expected, rtol=1e-5)


def case_of(**config):
    settings = DiscreteSacConfig(**{"hidden_sizes": (8, 8), "critics": 2, **config})
    bounds = (-math.inf, math.inf)
    return Case(DiscreteSac(settings, INPUTS, ACTIONS, bounds, np.random.default_rng(0)))


def applied(case, name, weights, inputs):
    rows = case.network(name)(weights[name], tf.reshape(inputs, [-1, INPUTS]))
    return tf.reshape(rows, [WORKERS, ROWS, ACTIONS]).numpy()


def test_the_critics_learn_the_value_of_the_largest_number_of_an_action():
    case = case_of()
    alpha = np.exp(case.weights["log_temperature"][0])
    batch = case.batch
    logits = applied(case, "actor", case.weights, batch.next_inputs)
    policy = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    lowest = np.minimum(
        applied(case, "critic_0", case.targets, batch.next_inputs),
        applied(case, "critic_1", case.targets, batch.next_inputs),
    )
    value = (policy * (lowest - alpha * np.log(policy))).sum(axis=-1)
    target = batch.reward + batch.discount * value
    chosen = batch.action.numpy().argmax(axis=-1)[..., None]
    expected = 0.0
    for name in ("critic_0", "critic_1"):
        q = np.take_along_axis(applied(case, name, case.weights, batch.inputs), chosen, axis=-1)
        expected += np.square(target - q[..., 0]).mean(axis=-1)
    losses = case.losses()
    np.testing.assert_allclose(losses.metrics["train/critic_loss"], expected, rtol=1e-4)
    q = [applied(case, name, case.weights, batch.inputs) for name in ("critic_0", "critic_1")]
    log_policy = tf.nn.log_softmax(applied(case, "actor", case.weights, batch.inputs))
    of_policy = choice_loss(tf.stack(q), log_policy, alpha)
    np.testing.assert_allclose(losses.metrics["train/actor_loss"], of_policy, rtol=1e-4)
    parts = [losses.metrics[f"train/{name}_loss"] for name in ("critic", "actor", "temperature")]
    np.testing.assert_allclose(losses.total, np.sum(parts, axis=0), rtol=1e-5)


def test_a_drawn_pair_of_critics_and_layer_norm_are_for_choices_too():
    case = case_of(critics=3, target_critics=2, layer_norm=True)
    case.noise["target_critics"] = tf.constant([2, 0])
    q = [applied(case, f"critic_{n}", case.targets, case.batch.next_inputs) for n in (0, 2)]
    log_policy = tf.nn.log_softmax(applied(case, "actor", case.weights, case.batch.next_inputs))
    value = soft_value(tf.stack(q), log_policy, tf.exp(case.weights["log_temperature"][0]))
    chosen = case.batch.action.numpy().argmax(axis=-1)[..., None]
    every = [applied(case, f"critic_{n}", case.weights, case.batch.inputs) for n in range(3)]
    target = case.batch.reward + case.batch.discount * value
    errors = [target - np.take_along_axis(each, chosen, axis=-1)[..., 0] for each in every]
    found = case.losses().metrics
    np.testing.assert_allclose(
        found["train/critic_loss"], np.square(errors).mean(-1).sum(0), rtol=1e-4
    )
    log_policy = tf.nn.log_softmax(applied(case, "actor", case.weights, case.batch.inputs))
    alpha = tf.exp(case.weights["log_temperature"][0])
    expected = choice_loss(tf.constant(np.mean(every, axis=0))[None], log_policy, alpha)
    np.testing.assert_allclose(found["train/actor_loss"], expected, rtol=1e-4)


def test_losses_phases_and_first_weights_are_those_that_are_asked_for():
    summed = case_of().losses().metrics["train/critic_loss"]
    halved = case_of(critic_loss="half_mean").losses().metrics["train/critic_loss"]
    np.testing.assert_allclose(halved, summed / 4, rtol=1e-6)  # of two critics, and half of it
    masked = case_of(truncated="masked").losses().metrics["train/critic_loss"]
    assert (masked.numpy() < summed.numpy()).all()  # a step of each worker is left out
    order = [phase.networks for phase in case_of(update_order="sequential").learner.phases]
    assert order == [("critic_0", "critic_1"), ("actor",), ("log_temperature",)]
    plain, other = (case_of(initializer=name).layout.initial() for name in ("glorot", "orthogonal"))
    assert np.abs(plain - other).max() > 0.1


def test_a_price_of_size_and_automatic_bounds_are_refused():
    with pytest.raises(UsageError, match=r"agent\.action_l2: expected a number in"):
        DiscreteSacConfig(action_l2=1.0)
    with pytest.raises(UsageError, match=r"agent\.return_clip: .auto. follows from the rewards"):
        DiscreteSacConfig(return_clip="auto")


def test_the_temperature_rises_where_there_is_less_entropy_than_wanted():
    for wanted, sign in ((1.0, -1.0), (0.0, 1.0)):
        by_network, by_targets = case_of(target_entropy=wanted).gradients()
        assert np.sign(by_network["log_temperature"]) == sign
        assert by_targets is None
    tuned, fixed = (case_of(learn_temperature=learned) for learned in (True, False))
    assert fixed.gradients()[0]["log_temperature"].tolist() == [0.0]
    loss = tuned.losses().metrics["train/temperature_loss"].numpy()
    entropy = tuned.losses().metrics["train/entropy"].numpy()
    alpha = np.exp(tuned.weights["log_temperature"][0])
    np.testing.assert_allclose(loss, alpha * (entropy - 0.98 * np.log(ACTIONS)), rtol=1e-4)
    assert "train/temperature_loss" not in fixed.losses().metrics


def test_numpy_chooses_what_the_network_prefers_and_draws_as_often_as_it_says():
    case = case_of()
    weights = [weight.numpy() for weight in case.weights["actor"]]
    inputs = np.asarray(case.batch.inputs).reshape(-1, INPUTS)
    act = ACTORS["categorical"].act
    logits = applied(case, "actor", case.weights, case.batch.inputs).reshape(-1, ACTIONS)
    one_hot = np.eye(ACTIONS)[logits.argmax(axis=-1)]
    np.testing.assert_array_equal(act(weights, inputs, None), one_hot)
    noise = np.random.default_rng(0).standard_normal((20000, ACTIONS)).astype(np.float32)
    drawn = act(weights, np.repeat(inputs[:1], 20000, axis=0), noise)
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.015)
    shapes = actor_shapes("categorical", INPUTS, (8, 8), ACTIONS)
    assert list(shapes) == case.network("actor").weight_names
    assert list(shapes.values()) == case.network("actor").shapes
