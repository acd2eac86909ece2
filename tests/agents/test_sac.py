import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.sac import Sac
from music_tf.config.agents import SacConfig
from music_tf.distributions import sample_tanh_gaussian
from music_tf.networks.acting import ACTORS
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case, random

FREE = (-math.inf, math.inf)
PAPER = {
    "critics": 2,
    "entropy_mode": "next_state",
    "actor_entropy": True,
    "learn_temperature": True,
    "next_action": "main",
}


def case_of(bounds=FREE, seed=0, **config):
    defaults = {"hidden_sizes": (8, 8), "action_l2": 0.0, "entropy_scale": 0.3}
    config = SacConfig(**{**defaults, **config})
    return Case(Sac(config, INPUTS, ACTIONS, bounds, np.random.default_rng(0)), seed)


def sample(case, weights, inputs, noise):
    mean, log_deviation = case.network("actor")(weights["actor"], tf.reshape(inputs, [-1, INPUTS]))
    shape = [WORKERS, ROWS, ACTIONS]
    return sample_tanh_gaussian(tf.reshape(mean, shape), tf.reshape(log_deviation, shape), noise)


def target(case, proposer, entropy=0.0):
    """Reward plus what is given, plus the discounted value of the proposer's next action."""
    batch = case.batch
    action = sample(case, proposer, batch.next_inputs, case.noise["next_policy"]).action
    lowest = tf.reduce_min(case.q(case.targets, batch.next_inputs, action), axis=0)
    return batch.reward + entropy + batch.discount * lowest


@pytest.mark.parametrize("critics", [1, 2])
@pytest.mark.parametrize("next_action", ["target", "main"])
def test_next_actions_come_from_the_chosen_actor(critics, next_action):
    case = case_of(critics=critics, entropy_mode="off", next_action=next_action)
    proposer = case.targets if next_action == "target" else case.weights
    expected = case.critic_loss(target(case, proposer))
    losses = case.losses(entropy_weight=1.0)
    assert not losses.paid
    np.testing.assert_allclose(losses.metrics["train/critic_loss"], expected, rtol=1e-4)
    other = case.weights if next_action == "target" else case.targets
    assert np.abs(case.critic_loss(target(case, other)) - expected).max() > 1e-4


@pytest.mark.parametrize("mode", ["batch_mean", "per_sample"])
def test_the_entropy_reward_is_that_of_the_main_actor_at_the_state_before(mode):
    case = case_of(entropy_mode=mode)
    drawn = sample(case, case.weights, case.batch.inputs, case.noise["policy"])
    rho = np.clip(-0.3 * drawn.log_density.numpy(), -1.0, 0.0)
    if mode == "batch_mean":
        rho = np.repeat(rho.mean(axis=1, keepdims=True), ROWS, axis=1)
    expected = case.critic_loss(target(case, case.targets, 0.5 * rho))
    losses = case.losses(entropy_weight=0.5)
    np.testing.assert_allclose(losses.metrics["train/critic_loss"], expected, rtol=1e-4)
    np.testing.assert_allclose(losses.paid["entropy"], 0.5 * rho, rtol=1e-4)


def test_the_soft_target_takes_off_the_log_density_of_the_next_action():
    case = case_of(**PAPER, temperature=0.4)
    # the weights of a case are perturbed, and so is the logarithm of its temperature
    alpha = math.exp(float(case.weights["log_temperature"][0]))
    following = sample(case, case.weights, case.batch.next_inputs, case.noise["next_policy"])
    entropy = -alpha * case.batch.discount * following.log_density
    expected = case.critic_loss(target(case, case.weights, entropy))
    np.testing.assert_allclose(case.losses().metrics["train/critic_loss"], expected, rtol=1e-4)


@pytest.mark.parametrize("config", [{}, {"entropy_mode": "per_sample"}])
def test_each_network_gets_the_gradient_of_its_own_loss_alone(config):
    case = case_of(**config)
    batch, fixed = case.batch, case.weights
    drawn = sample(case, fixed, batch.inputs, case.noise["policy"])
    rho = np.clip(-0.3 * drawn.log_density.numpy(), -1.0, 0.0)
    rho = rho if config else np.repeat(rho.mean(axis=1, keepdims=True), ROWS, axis=1)
    y = target(case, case.targets, 0.5 * rho)

    def policy_loss(weights):
        action = sample(case, weights, batch.inputs, case.noise["policy"]).action
        return -tf.reduce_mean(tf.reduce_min(case.q(fixed, batch.inputs, action), axis=0), axis=1)

    found, on_targets = case.gradients(entropy_weight=0.5)
    assert on_targets is None
    expected = case.gradient_of(lambda weights: case.critic_loss(y, weights))
    np.testing.assert_allclose(found["critic_0"], expected["critic_0"], atol=1e-5)
    np.testing.assert_allclose(found["actor"], case.gradient_of(policy_loss)["actor"], atol=1e-5)
    assert np.abs(found["actor"]).max() > 1e-3


def test_the_temperature_follows_the_gap_to_the_entropy_wanted():
    case = case_of(**PAPER, target_entropy_per_action=-2.0)
    alpha = math.exp(float(case.weights["log_temperature"][0]))
    drawn = sample(case, case.weights, case.batch.inputs, case.noise["policy"])
    # -alpha (mean log pi - 2 A), summed over the workers
    expected = -alpha * np.sum(drawn.log_density.numpy().mean(axis=1) - 2.0 * ACTIONS)
    found, _ = case.gradients()
    np.testing.assert_allclose(found["log_temperature"], [expected], rtol=1e-4)
    metrics = case.losses().metrics
    np.testing.assert_allclose(metrics["train/temperature"], [alpha] * WORKERS, rtol=1e-6)
    np.testing.assert_allclose(metrics["train/entropy"], -drawn.log_density.numpy().mean(1), 1e-5)
    # an entropy below the target gives a negative loss, which falls as alpha grows
    gap = metrics["train/entropy"] + 2.0 * ACTIONS
    np.testing.assert_allclose(metrics["train/temperature_loss"], alpha * gap, rtol=1e-4)


def test_a_temperature_starts_as_configured_without_a_target_and_if_fixed_stays_there():
    case = case_of(**{**PAPER, "learn_temperature": False})
    assert "train/temperature_loss" not in case.losses().metrics
    assert case.gradients()[0]["log_temperature"].tolist() == [0.0]
    assert case.network("log_temperature").learning_rate == 0.0
    assert case_of(**PAPER, temperature_learning_rate=0.01).network(
        "log_temperature"
    ).learning_rate == pytest.approx(0.01)
    network = case_of(temperature=0.4).network("log_temperature")
    np.testing.assert_allclose(network.initial, [math.log(0.4)], rtol=1e-6)
    learner = case_of(critics=2).learner
    targets = [network.name for network in learner.target_networks]
    assert targets == ["actor", "critic_0", "critic_1"]
    assert [network.name for network in learner.networks] == [*targets, "log_temperature"]


@pytest.mark.parametrize("deviation", ["tanh", "softplus", "clip"])
@pytest.mark.parametrize("linear_features", [True, False])
@pytest.mark.parametrize("actor_sizes", [(8,), (8, 4, 8)])
def test_acting_takes_the_squashed_mean_or_sample_of_keras(actor_sizes, linear_features, deviation):
    settings = {"actor_sizes": actor_sizes, "linear_features": linear_features}
    settings |= {"deviation": deviation}
    case, act = case_of(**settings), ACTORS[SacConfig(**settings).actor].act
    inputs, noise = 3.0 * random(40, INPUTS), random(40, ACTIONS, seed=5)
    weights = [weight.numpy() for weight in case.weights["actor"]]
    mean, log_deviation = case.network("actor")(case.weights["actor"], inputs)
    quiet = act(weights, inputs.numpy(), None)
    np.testing.assert_allclose(quiet, np.tanh(mean), rtol=1e-4, atol=1e-6)
    sampled = act(weights, inputs.numpy(), noise.numpy())
    expected = sample_tanh_gaussian(mean, log_deviation, noise).action
    np.testing.assert_allclose(sampled, expected, rtol=1e-4, atol=1e-5)
    assert quiet.dtype == sampled.dtype == np.float32
    assert np.abs(sampled).max() <= 1.0


def test_noise_is_drawn_for_each_worker_from_its_own_generator():
    draws = case_of().learner.draws
    both = draws([np.random.default_rng(1), np.random.default_rng(2)], 3, 4)
    alone = draws([np.random.default_rng(2)], 3, 4)
    assert set(both) == {"policy", "next_policy"}
    for name, noise in both.items():
        assert noise.shape == (3, 2, 4, ACTIONS)
        np.testing.assert_array_equal(noise[:, 1], alone[name][:, 0])
    assert (both["policy"] != both["next_policy"]).all()


def test_the_correction_for_squashing_is_that_of_the_settings():
    exact, bounded = (
        case_of(**PAPER, squash_correction=correction).losses().metrics["train/entropy"]
        for correction in ("exact", "epsilon")
    )
    case = case_of(**PAPER)
    drawn = sample(case, case.weights, case.batch.inputs, case.noise["policy"])
    added = np.log1p(1e-6 / (1.0 - np.square(drawn.action, dtype=np.float64)))
    np.testing.assert_allclose(bounded - exact, added.sum(-1).mean(-1), rtol=0.2, atol=2e-6)
    assert np.abs(bounded - exact).max() > 0.0
