import functools

import numpy as np

from music_tf.config.agents import DdpgConfig, SacConfig, SacValueConfig
from music_tf.config.settings import NormalizerConfig
from music_tf.networks.acting import (
    GAUSSIANS,
    Moments,
    NetworkInputs,
    SkillSnapshots,
    Snapshot,
    SnapshotPolicy,
    actor_shapes,
    arrays_of,
    learned_skill,
    skill_arrays,
)
from music_tf.networks.models import deterministic_actor, gaussian_actor
from music_tf.networks.parameters import Network
from tests.kit.cases import cases

MODELS = {
    "deterministic": deterministic_actor,
    **{name: functools.partial(gaussian_actor, actor=name) for name in GAUSSIANS},
}
INPUTS = NetworkInputs(
    Moments(np.zeros(2, np.float32), np.ones(2, np.float32)),
    Moments(np.zeros(1, np.float32), np.ones(1, np.float32)),
    NormalizerConfig(),
    condition=1,
)


@cases(
    "config",
    DdpgConfig(),
    SacConfig(),
    SacConfig(linear_features=False),
    SacConfig(deviation="softplus"),
    SacValueConfig(deviation="clip", linear_features=False),
)
def test_weights_have_names_shapes_and_order_of_the_model(config):
    network = Network("actor", MODELS[config.actor](4, 3, (8, 5), np.random.default_rng(0)), 0.0)
    expected = dict(zip(network.weight_names, network.shapes, strict=True))
    assert list(actor_shapes(config.actor, 4, (8, 5), 3).items()) == list(expected.items())


def test_networks_see_how_far_object_and_hand_have_to_move():
    moments = Moments(np.full(2, 0.5, np.float32), np.full(2, 2.0, np.float32))
    inputs = INPUTS._replace(goal=moments, condition=0, reach=np.array([[1.0], [0.0]]))
    seen = np.float32([[3, 1], [3, 1]])  # of the object and of the hand
    found = inputs(seen, np.float32([[7, 0], [0, 5]]), np.zeros([2, 0], np.float32))
    np.testing.assert_array_equal(found, [[3, 1, 1.75, 0.75], [3, 1, -1, 1.75]])
    np.testing.assert_array_equal(inputs(seen[0], np.float32([7]), np.zeros(0)), found[0])


def test_each_skill_acts_with_weights_and_moments_of_its_own():
    random = np.random.default_rng(0)
    each = []
    for number in range(3):
        weights = {
            "actor/action/kernel": random.standard_normal([3, 2]).astype(np.float32),
            "actor/action/bias": random.standard_normal(2).astype(np.float32),
        }
        moments = Moments(np.full(2, number, np.float32), np.full(2, 1.0 + number, np.float32))
        inputs = INPUTS._replace(observation=moments, condition=0)
        each.append(Snapshot("deterministic", weights, inputs))
    all_of_them = SkillSnapshots(tuple(each))
    observation, goal = random.standard_normal([5, 2]), np.zeros([5, 1], np.float32)
    numbers = np.array([2, 0, 2, 1, 0])
    skill = np.eye(3, dtype=np.float32)[numbers]
    found = SnapshotPolicy(all_of_them)(observation, goal, skill, np.zeros([5, 2], np.float32))
    for row, number in enumerate(numbers):
        alone = each[number].act(observation[[row]], goal[[row]], skill[[row]], None)
        np.testing.assert_allclose(found[row], alone[0], rtol=1e-5)
    arrays = {n: np.stack([skill_arrays(one)[n] for one in each]) for n in skill_arrays(each[0])}
    for number, one in enumerate(each):
        np.testing.assert_equal(arrays_of(learned_skill(each[0], arrays, number)), arrays_of(one))
