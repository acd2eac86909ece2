import numpy as np
import pytest

from music_tf.config.settings import NormalizerConfig
from music_tf.config.world import trust
from music_tf.networks.acting import Moments, NetworkInputs
from music_tf.networks.belief import Belief, Encoder, Steps, context_rows, encoder_shapes
from music_tf.recipes.pearl import PearlConfig
from tests.agents.test_pearl import ACTIONS, OBSERVED, PearlCase
from tests.kit import encoders
from tests.kit.cases import cases


def weights_of(case):
    network = case.network("encoder")
    values = case.weights["encoder"]
    return {n: v.numpy() for n, v in zip(network.weight_names, values, strict=True)}


OWN = [f"{encoders.HERE}:{name}" for name in ("rowwise", "pooled", "recurrent")]
trust(OWN)


@pytest.mark.parametrize("encoder", ["mlp", "gru", "lstm", *OWN])
@cases("kind", {}, {"deterministic_latent": True}, {"posterior": "full"}, ids=lambda one: str(*one))
def test_numpy_infers_what_the_learner_does(encoder, kind):
    case = PearlCase(encoder=encoder, **kind)
    infer = Encoder(weights_of(case), case.config.inference)
    noise = case.noise["belief"].numpy()
    latents, _ = case.latents()
    for worker, task in ((0, 0), (1, 3)):
        belief = infer(case.noise["context"][worker, task].numpy())
        drawn = belief.draw(noise[worker, task])
        np.testing.assert_allclose(drawn, latents[worker, task], rtol=1e-4, atol=1e-5)
        assert bool(belief.variance.any()) is not case.config.deterministic_latent
    assert drawn.dtype == np.float32
    if belief.spread is not None:
        covariance = belief.spread.T @ belief.spread
        np.testing.assert_allclose(np.diag(covariance), belief.variance, rtol=1e-5)


@pytest.mark.parametrize("encoder", ["gru", "lstm"])
def test_a_recurrent_encoder_reads_steps_in_their_order(encoder):
    case = PearlCase(encoder=encoder)
    infer = Encoder(weights_of(case), case.config.inference)
    rows = case.noise["context"][0, 0].numpy()
    assert np.abs(infer(rows).mean - infer(rows[::-1]).mean).max() > 1e-3
    # a state far from 0, where e^-x would overflow
    assert np.isfinite(infer(1e6 * rows).mean).all()


@pytest.mark.parametrize("encoder", ["mlp", "gru", "lstm"])
@pytest.mark.parametrize("kind", [{"context_next_observation": True}, {"posterior": "full"}])
def test_shapes_are_those_of_the_keras_model_in_its_order(encoder, kind):
    case = PearlCase(encoder=encoder, encoder_sizes=(8, 5), **kind)
    network = case.network("encoder")
    shapes = encoder_shapes(case.config.inference, OBSERVED, ACTIONS)
    assert list(shapes.items()) == list(zip(network.weight_names, network.shapes, strict=True))


def test_without_a_context_the_prior_is_believed_and_a_latent_has_its_deviation():
    for deterministic, variance in ((False, [1.0, 1.0]), (True, [0.0, 0.0])):
        case = PearlCase(deterministic_latent=deterministic)
        prior = Encoder(weights_of(case), case.config.inference).prior
        assert (prior.mean.tolist(), prior.variance.tolist()) == ([0.0, 0.0], variance)
    belief = Belief(np.float32([1.0, -1.0]), np.float32([4.0, 0.0]))
    np.testing.assert_array_equal(belief.draw(np.float32([0.5, 9.0])), [2.0, -1.0])


def test_rows_of_a_context_hold_normalised_observations_and_the_scaled_reward():
    inputs = NetworkInputs(
        Moments(np.float32([1.0]), np.float32([2.0])),
        Moments(np.zeros(0, np.float32), np.ones(0, np.float32)),
        NormalizerConfig(),
        condition=0,
    )
    steps = Steps(
        np.float32([[3.0]]),
        np.float32([[0.5, -0.5]]),
        np.float32([-7.0]),
        np.float32([[5.0]]),
        {"sparse": np.float32([[4.0]])},
    )
    for inference, expected in (
        ({}, [1.0, 0.5, -0.5, -7.0]),
        ({"context_next_observation": True}, [1.0, 0.5, -0.5, -7.0, 2.0]),
        ({"context_reward": "sparse"}, [1.0, 0.5, -0.5, 4.0]),
        ({"context_reward_scale": 10.0}, [1.0, 0.5, -0.5, -70.0]),
    ):
        rows = context_rows(PearlConfig(**inference).inference, inputs, steps)
        np.testing.assert_array_equal(rows, [expected])
