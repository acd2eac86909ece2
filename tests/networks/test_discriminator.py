import keras
import numpy as np
import pytest

from music_tf.networks.models import plain
from music_tf.networks.parameters import Layout, Network
from music_tf.networks.reward_networks import OWN, Discriminator, discriminator_of, refuse_own
from tests.kit.cases import cases

SEEN = {"components": [0, 2], "state": "next"}
SCALE = np.array([[0.1, -0.2], [2.0, 0.5]], np.float32)


def arrays(hidden=(4, 6), columns=2, skills=3):
    network = Network(
        "discriminator", plain(columns, skills, "logits", hidden, np.random.default_rng(0)), 0.1
    )
    layout = Layout([network])
    named = layout.name_arrays(layout.initial() + 0.1)
    return network, {f"parameters/{name}": array for name, array in named.items()}


def test_numpy_scores_three_logits_as_worked_by_hand_and_as_the_trained_network_does():
    kernel = np.zeros([1, 3], np.float32)
    names = Discriminator([kernel, np.array([2.0, 0.0, -1.0], np.float32)], None, (0,), True)
    np.testing.assert_allclose(
        names.log_likelihood(np.zeros([1, 1])), [[-0.169846, -2.169846, -3.169846]], atol=1e-5
    )
    network, saved = arrays()
    saved["scales/discriminator"] = SCALE
    names = discriminator_of(saved, SEEN, (4, 6), 3)
    assert (names.columns, names.after, names.size) == ((0, 2), True, 2)
    states = np.random.default_rng(1).normal(0, 3, (5, 2)).astype(np.float32)
    layers = [array for name, array in saved.items() if name.startswith("parameters")]
    logits = network(layers, (states - SCALE[0]) / SCALE[1])
    expected = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
    np.testing.assert_allclose(names.log_likelihood(states), expected, atol=1e-5)


def test_one_may_see_nothing_or_values_beside_the_observation_or_be_missing():
    _, saved = arrays()
    names = discriminator_of(saved, {"components": [], "state": "next", "blind": True}, (4, 6), 3)
    found = names.log_likelihood(np.random.default_rng(1).normal(size=(5, 25)))
    np.testing.assert_array_equal(found, found[:1].repeat(5, axis=0))  # all states are alike
    names = discriminator_of(saved, {"components": ["my:torso"], "state": "current"}, (4, 6), 3)
    assert (names.columns, names.after) == ((), False)
    assert discriminator_of({"parameters/actor/x": np.zeros(1)}, SEEN, (4, 6), 3) is None


HALF = {"scales/discriminator": SCALE[:1]}
NUMBER = {"parameters/discriminator/hidden_0/kernel": np.float32(1.0)}


@cases(
    ("inputs", "hidden", "skills", "changes", "text"),
    (SEEN, (4, 7), 3, {}, r"hidden_1/kernel: expected \(4, 7\), found \(4, 6\)"),
    (SEEN, (4, 6, 6), 3, {}, "hidden_2/kernel: expected .*, found nothing"),
    (SEEN, (4, 6), 4, {}, r"logits/kernel: expected \(6, 4\), found \(6, 3\)"),
    (SEEN, (4, 6), 3, HALF, "does not fit its 2 inputs"),
    (SEEN, (4, 6), 3, NUMBER, r"hidden_0/kernel: expected a matrix, found \(\)"),
    ({"components": [0, 2], "state": "then"}, (4, 6), 3, {}, "does not fit its 2 inputs"),
    (None, (4, 6), 3, {}, "does not fit its 2 inputs"),
)
def test_one_of_another_run_is_refused(inputs, hidden, skills, changes, text):
    saved = arrays()[1] | {"scales/discriminator": SCALE} | changes
    with pytest.raises(ValueError, match=text):
        discriminator_of(saved, inputs, hidden, skills)


def test_a_network_without_a_mark_may_be_copied():
    for inputs in (SEEN, {**SEEN, OWN: False}, None, []):
        refuse_own("parameters/phi", inputs)
    with pytest.raises(ValueError, match="parameters/phi: expected ReLU layers"):
        refuse_own("parameters/phi", {OWN: True})
