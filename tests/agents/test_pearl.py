import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.agents.pearl import Pearl
from music_tf.agents.sac_value import SacValue
from music_tf.config.agents import SacValueConfig
from music_tf.recipes.pearl import PearlConfig
from tests.kit.batches import ACTIONS, INPUTS, ROWS, WORKERS, Case, random

LATENT, TASKS, CONTEXT = 2, 5, 7
OBSERVED = INPUTS - LATENT
FREE = (-math.inf, math.inf)


class PearlCase(Case):
    """A learner with contexts of five tasks a worker, one row of each, among its noise."""

    def __init__(self, **config):
        defaults = {
            "hidden_sizes": (8, 8),
            "encoder_sizes": (8,),
            "latent_size": LATENT,
            "meta_batch": WORKERS * TASKS,
            "action_l2": 0.0,
            "critics": 2,
            "linear_features": False,
        }
        self.config = PearlConfig(**{**defaults, **config})
        super().__init__(Pearl(self.config, INPUTS, ACTIONS, FREE, np.random.default_rng(0)))
        row = self.config.inference.row_dim(OBSERVED, ACTIONS)
        self.noise |= {
            "context": random(WORKERS, TASKS, CONTEXT, row, seed=20),
            "belief": random(WORKERS, WORKERS * TASKS, LATENT, seed=21),
        }

    def learner_draws(self):  # noise as the learner draws it for one update
        generators = [np.random.default_rng(worker) for worker in range(WORKERS)]
        return {n: tf.constant(v[0]) for n, v in self.learner.draws(generators, 1, ROWS).items()}

    def latents(self, weights=None):
        weights = self.weights if weights is None else weights
        return self.learner.infer(weights, self.noise["context"], self.noise["belief"])


def parts(case, **alone):
    """Gradients by network of one kind of loss, with all weights of the others at 0."""
    off = {"kl_weight": 0.0, "mean_l2": 0.0, "log_deviation_l2": 0.0} | alone
    case.learner._config = dataclasses.replace(case.config, **off)
    return case.gradients()[0]


def gradients_of(case, metric):  # gradients by network of what a metric of the losses says
    return case.gradient_of(
        lambda weights: case.learner.losses(
            weights, case.targets, case.batch, case.noise, tf.constant(0.0)
        ).metrics[metric]
    )


def moved(found):
    return {name for name, gradient in found.items() if np.abs(gradient).max() > 1e-6}


def test_critics_and_divergence_move_the_encoder_and_nothing_else_does():
    case = PearlCase()
    assert moved(gradients_of(case, "train/critic_loss")) == {"critic_0", "critic_1", "encoder"}
    assert moved(gradients_of(case, "train/value_loss")) == {"value"}
    assert moved(gradients_of(case, "train/actor_loss")) == {"actor"}
    assert moved(gradients_of(case, "pearl/kl")) == {"encoder"}
    whole = case.gradients()[0]
    assert moved(whole) == {"critic_0", "critic_1", "encoder", "value", "actor"}
    kl = gradients_of(case, "pearl/kl")["encoder"]
    td = gradients_of(case, "train/critic_loss")["encoder"]
    # averaged over two workers, the divergence is summed over the ten tasks of both
    np.testing.assert_allclose(whole["encoder"], td + 0.1 * 10 * kl, rtol=1e-3, atol=1e-5)


def test_later_phases_take_the_latent_that_the_first_one_inferred():
    case = PearlCase()
    latent, _ = case.latents()
    first = case.losses()
    np.testing.assert_array_equal(first.carried["latent"], latent)
    carried = {**case.noise, "latent": latent, "context": case.noise["context"] + 9.0}
    later = case.learner.losses(case.weights, case.targets, case.batch, carried, tf.constant(0.0))
    for name in ("train/critic_loss", "train/value_loss", "train/actor_loss"):
        np.testing.assert_allclose(later.metrics[name], first.metrics[name], rtol=1e-6)
    with tf.GradientTape() as tape:
        weights = case.layout.split(tf.identity(case.flat))
        total = case.learner.losses(weights, case.targets, case.batch, carried, tf.zeros([])).total
    assert not case.by_network(tape.gradient(total, case.flat))["encoder"].any()


def test_the_first_of_several_phases_logs_critics_and_belief_and_later_ones_the_rest():
    case = PearlCase(update_order="sequential")
    first = case.losses()
    assert {n for n in first.metrics if not n.startswith("pearl/")} == {
        "train/critic_loss",
        "train/mean_q",
    }
    case.noise["latent"] = first.carried["latent"]
    at_once = PearlCase(update_order="simultaneous").losses()
    assert case.losses().metrics.keys() == at_once.metrics.keys()
    np.testing.assert_array_equal(first.total, at_once.total)


def test_losses_are_those_of_sac_on_observations_beside_latents():
    case = PearlCase(kl_weight=0.0, mean_l2=0.0, log_deviation_l2=0.0)
    latent, _ = case.latents()
    rows = tf.repeat(latent, ROWS // TASKS, axis=1)
    joined = [
        tf.concat([part[..., :OBSERVED], rows], axis=-1)
        for part in (case.batch.inputs, case.batch.next_inputs)
    ]
    shared = {f.name: getattr(case.config, f.name) for f in dataclasses.fields(SacValueConfig)}
    plain = SacValue(SacValueConfig(**shared), INPUTS, ACTIONS, FREE, np.random.default_rng(1))
    batch = case.batch._replace(inputs=joined[0], next_inputs=joined[1])
    expected = plain.losses(case.weights, case.targets, batch, case.noise, tf.constant(0.0))
    np.testing.assert_allclose(case.losses().total, expected.total, rtol=1e-5)


def assert_losses_of(case, latents):
    """The critics' loss of a case is that under these latents, one for each row of its batch."""
    given = {**case.noise, "latent": latents}
    expected = case.learner.losses(case.weights, case.targets, case.batch, given, tf.zeros([]))
    of_critics = [each.metrics["train/critic_loss"] for each in (case.losses(), expected)]
    np.testing.assert_allclose(*of_critics)


def test_rows_of_a_task_share_its_latent_and_latents_of_a_context_its_steps():
    case = PearlCase()
    case.noise["context"] = case.noise["context"][:, :1]  # one task has all rows
    assert_losses_of(case, tf.repeat(case.latents()[0], ROWS, axis=1))
    case = PearlCase(encoder="gru", context_rows=5, context_chunk=1, meta_batch=WORKERS)
    case.noise["context"] = case.noise["context"][:, :1, :5]
    case.noise |= case.learner_draws()
    assert case.latents()[0].shape == (WORKERS, 5, LATENT)
    assert_losses_of(case, case.latents()[0])


def test_mean_deviation_and_sample_of_the_policy_cost_what_the_settings_say():
    case = PearlCase()
    rows = tf.repeat(case.latents()[0], ROWS // TASKS, axis=1)
    inputs = tf.concat([case.batch.inputs[..., :OBSERVED], rows], axis=-1)
    inputs = tf.reshape(inputs, [-1, INPUTS])
    mean, deviation = case.network("actor")(case.weights["actor"], inputs)
    raw = mean + tf.exp(deviation) * tf.reshape(case.noise["policy"], mean.shape)
    costs = {
        "mean_l2": np.square(mean).mean(),
        "log_deviation_l2": np.square(deviation).mean(),
        "raw_action_l2": np.square(raw).sum(axis=-1).mean(),
    }
    none = parts(case)["actor"]
    before = case.losses().metrics["train/actor_loss"]
    for name, cost in costs.items():
        assert np.abs(parts(case, **{name: 0.5})["actor"] - none).max() > 1e-4, name
        added = np.mean(case.losses().metrics["train/actor_loss"] - before)
        assert added == pytest.approx(0.5 * cost, rel=1e-4), name


def test_a_deterministic_latent_is_the_mean_of_what_rows_say_and_costs_no_divergence():
    case = PearlCase(deterministic_latent=True)
    latent, divergence = case.latents()
    flat = tf.reshape(case.noise["context"], [-1, case.noise["context"].shape[-1]])
    said = case.network("encoder")(case.weights["encoder"], flat)
    expected = tf.reduce_mean(tf.reshape(said, [WORKERS, TASKS, CONTEXT, LATENT]), axis=2)
    np.testing.assert_allclose(latent, expected, rtol=1e-5, atol=1e-6)
    assert not np.any(divergence)
    assert moved(case.gradients()[0]) >= {"encoder"}


@pytest.mark.parametrize(("following", "size"), [(False, 1), (True, 1 + OBSERVED)])
def test_the_encoder_reads_observation_action_and_reward_and_perhaps_what_followed(following, size):
    case = PearlCase(context_next_observation=following)
    assert case.network("encoder").shapes[0] == (OBSERVED + ACTIONS + size, 8)
    assert case.network("encoder").shapes[-1] == (2 * LATENT,)


def test_critics_move_first_with_the_encoder_in_a_sequence():
    learner = PearlCase(update_order="sequential").learner
    assert learner.sequence == [("critic_0", "critic_1", "encoder"), ("value",), ("actor",)]
    assert (learner.encoder.name, learner.networks[0].name) == ("encoder", "actor")
    assert [network.name for network in learner.target_networks] == ["value"]


@pytest.mark.parametrize("encoder", ["gru", "lstm"])
def test_a_recurrent_encoder_infers_after_each_chunk_without_a_gradient_in_earlier_ones(encoder):
    case = PearlCase(encoder=encoder, context_rows=6, context_chunk=3)
    context, noise = case.noise["context"][:, :, :6], tf.zeros([WORKERS, 2 * TASKS, LATENT])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(context)
        latents, divergence = case.learner.infer(case.weights, context, noise)
        early, late = latents[:, ::2], latents[:, 1::2]
    assert (latents.shape, divergence.shape) == ((WORKERS, 2 * TASKS, LATENT), (WORKERS, 2 * TASKS))
    case.learner._config = dataclasses.replace(case.config, context_rows=3)
    alone, _ = case.learner.infer(case.weights, context[:, :, :3], noise)
    case.learner._config = case.config
    # a context that ends after the first chunk says what that chunk says
    np.testing.assert_allclose(early, alone, rtol=1e-5, atol=1e-6)
    moved_early, moved_late = (np.abs(tape.gradient(part, context)) for part in (early, late))
    assert moved_early[:, :, :3].max() > 0.0
    assert not moved_early[:, :, 3:].any()
    assert moved_late[:, :, 3:].max() > 0.0
    assert not moved_late[:, :, :3].any()
    turned = tf.concat([context[:, :, 2::-1], context[:, :, 3:]], axis=2)
    changed, _ = case.learner.infer(case.weights, turned, noise)
    assert np.abs(changed[:, 1::2] - late).max() > 1e-4  # but it knows what came before


def test_a_full_covariance_is_trained_by_critics_and_divergence_too():
    case = PearlCase(posterior="full")
    assert case.network("encoder").shapes[-1] == (LATENT + 1,)
    assert moved(gradients_of(case, "pearl/kl")) == {"encoder"}
    assert "encoder" in moved(gradients_of(case, "train/critic_loss"))
