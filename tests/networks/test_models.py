import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.agents import DdpgConfig
from music_tf.networks.models import critic, deterministic_actor, gaussian_actor, statistics_network
from tests.kit.cases import cases
from tests.kit.episodes import rng


def put(model, *weights):
    model.set_weights([np.array(weight) for weight in weights])


def test_hidden_layers_are_relu_and_actions_tanh():
    model = deterministic_actor(2, 1, (2,), rng())
    put(model, [[1.0, -1.0], [0.0, 0.0]], [0.5, 0.0], [[1.0], [3.0]], [0.25])
    # x = 1: relu(1.5, -1) = (1.5, 0) -> 1.5 + 0.25; x = -1: relu(-0.5, 1) = (0, 1) -> 3.25
    found = model(np.float32([[1.0, 9.0], [-1.0, 9.0]]))
    np.testing.assert_allclose(found, np.tanh([[1.75], [3.25]]), rtol=1e-6)


def test_log_deviations_lie_between_minus_five_and_two():
    model = gaussian_actor(2, 3, (4,), rng())
    model.set_weights([100.0 * weight for weight in model.get_weights()])
    inputs = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    mean, log_deviation = map(np.asarray, model(inputs))
    assert np.abs(mean).max() > 10.0
    assert log_deviation.min() == pytest.approx(-5.0, abs=1e-3)
    assert log_deviation.max() == pytest.approx(2.0, abs=1e-3)
    put(model, *(np.zeros(weight.shape) for weight in model.get_weights()))
    np.testing.assert_allclose(model(inputs)[1], np.full([200, 3], -1.5))  # -5 + 3.5 (0 + 1)


@cases(
    ("actor", "expected"),
    # w = -30, 0, 30 through 0.001 + log(1 + e^w), and through exp(clip(w, -20, 2))
    ("gaussian_plain_softplus", [0.001, 0.001 + np.log(2.0), 30.001]),
    ("gaussian_clip", [np.exp(-20.0), 1.0, np.exp(2.0)]),
)
def test_deviations_are_what_the_actor_is_named_for(actor, expected):
    model = gaussian_actor(1, 3, (1,), rng(), actor)
    weights = {layer.name: layer for layer in model.layers}
    put(weights["log_deviation"], [[0.0, 0.0, 0.0]], [-30.0, 0.0, 30.0])
    found = np.exp(np.asarray(model(np.float32([[1.0]]))[1]))
    np.testing.assert_allclose(found, [expected], rtol=1e-4)


@cases(
    ("initializer", "scales"),
    # deviations of hidden layers and of the head: a uniform one in [-a, a] has a / sqrt(3)
    ("glorot", (np.sqrt(2.0 / 700), np.sqrt(2.0 / 310))),
    ("lecun_uniform", (np.sqrt(1.0 / 400), np.sqrt(1.0 / 300))),
    ("he_normal", (np.sqrt(2.0 / 400), np.sqrt(2.0 / 310))),
    ("orthogonal", (np.sqrt(1.0 / 400), np.sqrt(1.0 / 300))),
)
def test_kernels_start_as_the_initialiser_says_and_biases_at_zero(initializer, scales):
    model = deterministic_actor(400, 10, (300,), rng(), initializer)
    (hidden, first), (head, second) = (layer.get_weights() for layer in model.layers[1:])
    assert not first.any()
    assert not second.any()
    np.testing.assert_allclose((hidden.std(), head.std()), scales, rtol=0.05)
    bounded = {"glorot": np.sqrt(6.0 / 700), "lecun_uniform": np.sqrt(3.0 / 400)}
    if initializer in bounded:
        assert 0.99 * bounded[initializer] < np.abs(hidden).max() <= bounded[initializer]
    if initializer == "he_normal":  # not cut off at two deviations
        assert np.abs(hidden).max() > 3.0 * scales[0]
    if initializer == "orthogonal":
        np.testing.assert_allclose(hidden.T @ hidden, np.eye(300), atol=1e-5)


def test_layer_norm_gives_the_units_of_a_row_mean_0_and_variance_1_before_their_relu():
    model = critic(DdpgConfig(hidden_sizes=(5, 4), layer_norm=True), 3, rng())
    generator = np.random.default_rng(1)
    weights = [generator.normal(size=each.shape).astype(np.float32) for each in model.weights]
    model.set_weights(weights)
    inputs, *weights = map(tf.constant, (generator.normal(size=(7, 3)).astype("f4"), *weights))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([inputs, *weights])
        values, layer = model(inputs), inputs
        for kernel, bias, gain, shift in (weights[:4], weights[4:8]):
            mean, variance = tf.nn.moments(layer @ kernel + bias, [-1], keepdims=True)
            units = (layer @ kernel + bias - mean) / tf.sqrt(variance + 1e-5)
            layer = tf.nn.relu(gain * units + shift)
        expected = layer @ weights[8] + weights[9]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    slopes = tape.gradient(values, [inputs, *model.weights])
    for slope, other in zip(slopes, tape.gradient(expected, [inputs, *weights]), strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-3, atol=1e-4)


def test_scores_of_the_statistics_network_are_bounded_and_its_first_layers_have_own_biases():
    model = statistics_network(1, 2, 2, rng())
    by_layer = {layer.name: layer for layer in model.layers}
    put(by_layer["agent"], [[1.0, -1.0]], [0.5, 0.0])
    put(by_layer["surrounding"], [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.25])
    put(by_layer["score"], [[0.5], [2.0]], [-0.125])
    # x = 1, y = (1, 3): relu(1 + 0.5 + 1, -1 + 3 + 0.25) = (2.5, 2.25) -> 1.25 + 4.5 - 0.125
    found = model([np.float32([[1.0]]), np.float32([[1.0, 3.0]])])
    np.testing.assert_allclose(found, [[np.tanh(5.625)]], rtol=1e-6)
    assert tf.reduce_max(tf.abs(found)) <= 1.0
