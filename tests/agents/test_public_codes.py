"""SAC as two public codes of DIAYN have it, each written down anew and compared row by row."""

import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.sac import Sac
from music_tf.agents.sac_value import SacValue
from music_tf.config.settings import SacConfig, SacValueConfig
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case, random

FREE = (-math.inf, math.inf)
RATES = {"actor_learning_rate": 3e-4, "critic_learning_rate": 3e-4}
SHARED = {
    **RATES,
    "critics": 2,
    "action_l2": 0.0,
    "linear_features": False,
    "polyak": 0.995,
    "polyak_every": "update",
}
QDAX = SacConfig(
    **SHARED,
    hidden_sizes=(256, 256),
    discount=0.97,
    entropy_mode="next_state",
    actor_entropy=True,
    next_action="main",
    temperature=1.0,
    learn_temperature=True,
    temperature_learning_rate=3e-4,
    target_entropy_per_action=-0.5,
    deviation="softplus",
    critic_loss="half_mean",
    truncated="masked",
    initializer="lecun_uniform",
)
DIAYN_PYTORCH = SacValueConfig(
    **SHARED,
    hidden_sizes=(300, 300),
    discount=0.99,
    temperature=0.1,
    value_learning_rate=3e-4,
    deviation="clip",
    squash_correction="epsilon",
    initializer="he_normal",
)


def learner_of(config):
    kind = Sac if isinstance(config, SacConfig) else SacValue
    return kind(config, INPUTS, ACTIONS, FREE, np.random.default_rng(0))


class Original:
    """What both codes compute from a case, without our losses and distributions."""

    def __init__(self, config):
        self.config = config
        self.case = Case(learner_of(config))
        self.alpha = math.exp(float(self.case.weights["log_temperature"][0]))
        self.batch = self.case.batch
        self.targets, self.fixed = self.case.targets, self.case.weights

    def policy(self, weights, inputs, noise):
        """Actions and log pi, from the outputs of the two heads."""
        hidden = tf.reshape(inputs, [-1, INPUTS])
        *layers, w_kernel, w_bias, mean_kernel, mean_bias = weights["actor"]
        for kernel, bias in zip(layers[::2], layers[1::2], strict=True):
            hidden = tf.nn.relu(hidden @ kernel + bias)
        w, mean = hidden @ w_kernel + w_bias, hidden @ mean_kernel + mean_bias
        noise = tf.reshape(noise, mean.shape)
        if self.config is QDAX:
            scale = tf.nn.softplus(w) + 1e-3
            raw = mean + scale * noise
            slope = 2.0 * (math.log(2.0) - raw - tf.nn.softplus(-2.0 * raw))
        else:
            scale = tf.exp(tf.clip_by_value(w, -20.0, 2.0))
            raw = mean + scale * noise
            slope = tf.math.log(1.0 - tf.tanh(raw) ** 2 + 1e-6)
        normal = (
            -0.5 * ((raw - mean) / scale) ** 2 - tf.math.log(scale) - 0.5 * math.log(2.0 * math.pi)
        )
        log_pi = tf.reduce_sum(normal - slope, axis=-1)
        action = tf.reshape(tf.tanh(raw), [WORKERS, ROWS, ACTIONS])
        return action, tf.reshape(log_pi, [WORKERS, ROWS])

    def lowest(self, weights, inputs, action):
        return tf.reduce_min(self.case.q(weights, inputs, action), axis=0)

    def value(self, weights, inputs):
        rows = self.case.network("value")(weights["value"], tf.reshape(inputs, [-1, INPUTS]))
        return tf.reshape(rows, [WORKERS, ROWS])

    def actor_loss(self, weights):
        action, log_pi = self.policy(weights, self.batch.inputs, self.case.noise["policy"])
        return tf.reduce_mean(
            self.alpha * log_pi - self.lowest(self.fixed, self.batch.inputs, action), axis=1
        )

    def critic_loss(self, weights):
        batch = self.batch
        q = self.case.q(weights, batch.inputs, batch.action)
        if self.config is DIAYN_PYTORCH:
            y = batch.reward + batch.discount * self.value(self.targets, batch.next_inputs)
            return sum(tf.reduce_mean((y - one) ** 2, axis=1) for one in q)
        action, log_pi = self.policy(self.fixed, batch.next_inputs, self.case.noise["next_policy"])
        following = self.lowest(self.targets, batch.next_inputs, action) - self.alpha * log_pi
        error = q - (batch.reward + batch.discount * following)
        error *= 1.0 - tf.cast(batch.truncated, tf.float32)
        return 0.5 * tf.reduce_mean(error**2, axis=[0, 2])

    def value_loss(self, weights):
        action, log_pi = self.policy(self.fixed, self.batch.inputs, self.case.noise["policy"])
        y = self.lowest(self.fixed, self.batch.inputs, action) - self.alpha * log_pi
        return tf.reduce_mean((self.value(weights, self.batch.inputs) - y) ** 2, axis=1)

    def temperature_loss(self, weights):
        _, log_pi = self.policy(self.fixed, self.batch.inputs, self.case.noise["policy"])
        wanted = -0.5 * ACTIONS
        return tf.exp(weights["log_temperature"][0]) * tf.reduce_mean(-log_pi - wanted, axis=1)


@pytest.mark.parametrize(
    ("config", "network", "loss"),
    [
        (QDAX, "actor", Original.actor_loss),
        (QDAX, "critic_0", Original.critic_loss),
        (QDAX, "critic_1", Original.critic_loss),
        (QDAX, "log_temperature", Original.temperature_loss),
        (DIAYN_PYTORCH, "actor", Original.actor_loss),
        (DIAYN_PYTORCH, "critic_0", Original.critic_loss),
        (DIAYN_PYTORCH, "critic_1", Original.critic_loss),
        (DIAYN_PYTORCH, "value", Original.value_loss),
    ],
)
def test_each_network_learns_by_the_gradient_of_the_original(config, network, loss):
    original = Original(config)
    found, _ = original.case.gradients()
    expected = original.case.gradient_of(lambda weights: loss(original, weights))[network]
    scale = np.abs(expected).max()
    assert scale > 1e-4
    np.testing.assert_allclose(found[network], expected, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize(
    ("row", "qdax", "diayn_pytorch"),
    [
        ("temperature at the start", 1.0, 0.1),
        ("temperature is learned", True, False),
        ("gamma", 0.97, 0.99),
        ("slow copies that are used", {"critic_0", "critic_1"}, {"value"}),
        ("share of the old slow copy", 0.995, 0.995),
        ("slow copies move", "update", "update"),
        ("one step from the same weights", 1, 1),
        ("widths", {256}, {300}),
        ("steps of Adam", {3e-4}, {3e-4, 0.0}),  # that of a fixed temperature is 0
        # of hidden layers and of heads, here with 6 inputs and 3 actions
        ("deviation of kernels", (256**-0.5, 256**-0.5), ((2 / 300) ** 0.5, (2 / 303) ** 0.5)),
    ],
)
def test_settings_are_those_of_the_original(row, qdax, diayn_pytorch):
    for config, expected in ((QDAX, qdax), (DIAYN_PYTORCH, diayn_pytorch)):
        learner = learner_of(config)
        kernels = dict(
            zip(
                learner.networks[0].weight_names,
                learner.networks[0].model.get_weights(),
                strict=True,
            )
        )
        deviations = tuple(kernels[f"actor/{name}/kernel"].std() for name in ("hidden_1", "mean"))
        found = {
            "temperature at the start": config.temperature,
            "temperature is learned": config.learn_temperature,
            "gamma": config.discount,
            "slow copies that are used": {network.name for network in learner.target_networks}
            - {"actor"},
            "share of the old slow copy": config.polyak,
            "slow copies move": config.polyak_every,
            "one step from the same weights": len(learner.phases),
            "widths": {*config.actor_layers, *config.critic_layers},
            "steps of Adam": {network.learning_rate for network in learner.networks},
        }
        if row == "deviation of kernels":
            np.testing.assert_allclose(deviations, expected, rtol=0.06)
        else:
            assert found[row] == expected


@pytest.mark.parametrize("config", [QDAX, DIAYN_PYTORCH], ids=["qdax", "diayn_pytorch"])
def test_the_most_likely_action_is_the_tanh_of_the_mean_whatever_the_noise(config):
    original = Original(config)
    inputs = random(WORKERS, ROWS, INPUTS, seed=3)
    nothing = tf.zeros([WORKERS, ROWS, ACTIONS])
    action, _ = original.policy(original.fixed, inputs, nothing)
    drawn = original.case.learner.sample(original.fixed, inputs, nothing)
    np.testing.assert_allclose(drawn.action, action, rtol=1e-5, atol=1e-6)
