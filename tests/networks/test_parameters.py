import keras
import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.agents import DdpgConfig
from music_tf.errors import UsageError
from music_tf.networks.models import critic, gaussian_actor, statistics_network
from music_tf.networks.parameters import Layout, Network, Scalar, compiled
from tests.kit.cases import cases
from tests.kit.pearl import small
from tests.kit.small import EVERYTHING, go_on, trainer_of

PEARL = small(agent__encoder="gru")


@pytest.fixture
def networks():
    seed = np.random.default_rng(0)
    return [
        Network("actor", gaussian_actor(3, 2, (4,), seed), 1e-3),
        Network("critic_0", critic(DdpgConfig(hidden_sizes=(4,)), 5, seed), 2e-3),
        Scalar("log_temperature", -1.5, 3e-3),
        Network("statistics", statistics_network(2, 2, 4, seed), 0.0),
    ]


@pytest.fixture
def layout(networks):
    return Layout(networks)


def test_names_say_network_layer_and_weight(layout):
    assert layout.names[:2] == ["actor/hidden_0/kernel", "actor/hidden_0/bias"]
    assert "actor/log_deviation/bias" in layout.names
    assert "critic_0/value/kernel" in layout.names
    assert layout.names.count("log_temperature") == 1
    assert layout.names[-6:] == [
        f"statistics/{layer}/{weight}"
        for layer in ("agent", "surrounding", "score")
        for weight in ("kernel", "bias")
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["float64", "mixed_float16"])
@pytest.mark.parametrize("config", [EVERYTHING, PEARL], ids=["all terms", "pearl"])
def test_networks_learn_in_float32_whatever_keras_is_set_to(config, policy):
    def learned():
        trainer = trainer_of(config)
        trainer.run_epoch(go_on)
        return trainer.shared()

    expected = learned()
    keras.config.set_dtype_policy(policy)
    keras.config.set_floatx("float64")
    try:
        np.testing.assert_equal(learned(), expected)
        assert keras.config.dtype_policy().name == policy
        assert keras.config.floatx() == "float64"
    finally:
        keras.config.set_dtype_policy("float32")
        keras.config.set_floatx("float32")


def test_functions_of_several_runs_in_a_process_are_no_retracing_of_one():
    told = []

    def record(entry):
        told.append(entry.getMessage())
        return True

    def doubled(numbers):
        return 2.0 * numbers

    tf.get_logger().addFilter(record)
    try:
        for run in range(20):
            assert float(compiled(doubled)(tf.constant(float(run)))) == 2.0 * run
    finally:
        tf.get_logger().removeFilter(record)
    assert told == []


def test_a_network_applies_the_weights_handed_in_and_not_its_own(networks, layout):
    inputs = tf.constant([[0.1, -0.2, 0.3, 0.5, -0.5]])
    flat = layout.initial()
    network = networks[1]
    own = network(layout.split(tf.constant(flat))["critic_0"], inputs)
    np.testing.assert_allclose(own, network.model(inputs), rtol=1e-6)
    zeros = network(layout.split(tf.zeros_like(flat))["critic_0"], inputs)
    np.testing.assert_array_equal(zeros, [[0.0]])


def test_splitting_gives_back_each_weight_and_rate_in_its_shape(networks, layout):
    weights = layout.split(tf.constant(layout.initial()))
    for network in (networks[0], networks[1], networks[3]):
        for piece, variable in zip(weights[network.name], network.model.weights, strict=True):
            np.testing.assert_array_equal(piece, variable.numpy())
    assert (weights["log_temperature"][0].shape, float(weights["log_temperature"][0])) == ((), -1.5)
    assert layout.size == len(layout.initial()) == sum(network.size for network in networks)
    rates = layout.split(tf.constant(layout.learning_rates()))
    for network in networks:
        found = np.concatenate([np.ravel(piece) for piece in rates[network.name]])
        np.testing.assert_array_equal(found, np.full(network.size, network.learning_rate, "f4"))


def test_arrays_by_name_survive_a_round_trip_and_two_of_one_name_are_refused(layout, networks):
    flat = np.random.default_rng(1).normal(size=layout.size).astype(np.float32)
    arrays = layout.name_arrays(flat)
    shuffled = {name: arrays[name] for name in sorted(arrays)}
    np.testing.assert_array_equal(layout.flatten(shuffled), flat)
    with pytest.raises(UsageError, match="critic_0/hidden_0/kernel: two networks"):
        Layout([networks[1], networks[1]])


def made(*layers):
    """Returns the network of a model of these layers on 3 inputs."""
    return Network("own", keras.Sequential([keras.Input([3]), *layers]), 1e-3)


@cases(
    ("layers", "problem"),
    ([keras.layers.Dense(4), keras.layers.Dense(2, trainable=False)], "got 2 others"),
    ([keras.layers.Dense(4), keras.layers.BatchNormalization()], "LayerNormalization"),
    ([keras.layers.ReLU()], "expected a model with weights, got none"),
)
def test_weights_that_the_vector_would_not_hold_are_refused(layers, problem):
    with pytest.raises(UsageError, match=problem):
        made(*layers)


def test_layers_without_a_name_are_numbered_within_their_model():
    def names():
        dense = keras.layers.Dense
        return made(dense(4), dense(4, name="seen"), keras.layers.LayerNormalization(), dense(2))

    expected = ["dense/kernel", "dense/bias", "seen/kernel", "seen/bias"]
    expected += ["layer_normalization/gamma", "layer_normalization/beta"]
    expected += ["dense_1/kernel", "dense_1/bias"]
    for network in (names(), names()):
        assert network.weight_names == [f"own/{name}" for name in expected]


TWO = [keras.layers.Dense(4), keras.layers.Dense(2)]


@cases(
    ("layers", "names"),
    ([keras.layers.Dense(2), keras.layers.Dropout(0.5)], ["dense/kernel", "dense/bias"]),
    (
        [keras.Sequential(TWO, name="inner")],
        [f"inner/{name}" for name in ("kernel", "bias", "kernel_1", "bias_1")],
    ),
)
def test_a_dropout_has_a_seed_and_no_weight_and_a_model_within_one_a_name_for_each(layers, names):
    network = made(*layers)
    assert Layout([network]).names == [f"own/{name}" for name in names]
    inputs = tf.ones([1, 3])
    weights = Layout([network]).split(tf.constant(network.initial))["own"]
    np.testing.assert_allclose(network(weights, inputs), network.model(inputs), rtol=1e-6)
