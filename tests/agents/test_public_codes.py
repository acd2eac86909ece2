"""The presets of two public codes of DIAYN: losses written down anew."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf import recipes
from music_tf.agents.sac import Sac
from music_tf.agents.sac_value import SacValue
from music_tf.config.agents import SacConfig
from music_tf.intrinsic.skill import Skill
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case
from tests.kit.cases import cases
from tests.kit.terms import context

FREE = (-math.inf, math.inf)
QDAX_RUN, DIAYN_PYTORCH_RUN = (
    recipes.resolve("sac_diayn", preset, "Hopper-v5") for preset in ("qdax", "diayn_torch")
)
QDAX, DIAYN_PYTORCH = QDAX_RUN.agent, DIAYN_PYTORCH_RUN.agent


def learner_of(config):
    kind = Sac if isinstance(config, SacConfig) else SacValue
    return kind(config, INPUTS, ACTIONS, FREE, np.random.default_rng(0))


class Original:  # what both codes compute from a case, without our losses and distributions
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
            double = tf.cast(raw, tf.float64)  # the difference loses its digits in float32
            slope = tf.cast(tf.math.log(1.0 - tf.tanh(double) ** 2 + 1e-6), tf.float32)
        normal = -0.5 * ((raw - mean) / scale) ** 2 - tf.math.log(scale) - 0.5 * math.log(math.tau)
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


@cases(
    ("config", "network", "loss"),
    (QDAX, "actor", Original.actor_loss),
    (QDAX, "critic_0", Original.critic_loss),
    (QDAX, "critic_1", Original.critic_loss),
    (QDAX, "log_temperature", Original.temperature_loss),
    (DIAYN_PYTORCH, "actor", Original.actor_loss),
    (DIAYN_PYTORCH, "critic_0", Original.critic_loss),
    (DIAYN_PYTORCH, "critic_1", Original.critic_loss),
    (DIAYN_PYTORCH, "value", Original.value_loss),
)
def test_each_network_learns_by_the_gradient_of_the_original(config, network, loss):
    original = Original(config)
    found, _ = original.case.gradients()
    expected = original.case.gradient_of(lambda weights: loss(original, weights))[network]
    scale = np.abs(expected).max()
    assert scale > 1e-4
    np.testing.assert_allclose(found[network], expected, rtol=1e-3, atol=1e-4 * scale)


@cases(
    ("run", "slow", "rates"),
    (QDAX_RUN, {"critic_0", "critic_1"}, {3e-4}),
    (DIAYN_PYTORCH_RUN, {"value"}, {3e-4, 0.0}),  # that of a fixed temperature is 0
    ids=["qdax", "diayn_pytorch"],
)
def test_slow_copies_and_steps_are_those_of_the_original(run, slow, rates):
    learner = learner_of(run.agent)
    targets = {network.name for network in learner.target_networks} - {"actor"}  # which is not used
    assert (targets, {network.learning_rate for network in learner.networks}) == (slow, rates)
    assert (len(learner.phases), run.agent.polyak_every) == (1, "update")
    assert run.replay.capacity == 1_000_000


@cases(
    ("run", "hidden", "heads"),
    (QDAX_RUN, lambda before, _: before**-0.5, lambda before, _: before**-0.5),
    (
        DIAYN_PYTORCH_RUN,
        lambda before, _: (2 / before) ** 0.5,
        lambda before, after: (2 / (before + after)) ** 0.5,
    ),
    ids=["qdax", "diayn_pytorch"],
)
def test_kernels_start_as_those_of_the_original(run, hidden, heads):
    settings = dataclasses.replace(run.rewards["skill"], normalize_inputs=False)
    term = Skill(settings, context(columns=tuple(range(8)), skills=run.skills))
    checked = 0
    for network in (*learner_of(run.agent).networks, *term.networks):
        if network.name == "log_temperature":
            continue
        names, weights = network.weight_names, network.model.get_weights()
        for name, kernel in zip(names, weights, strict=True):
            if name.endswith("bias"):
                assert not kernel.any()
            elif kernel.size > 500:
                wanted = hidden if "hidden" in name else heads
                assert kernel.std() == pytest.approx(wanted(*kernel.shape), rel=0.1)
                checked += 1
    assert checked >= 8
