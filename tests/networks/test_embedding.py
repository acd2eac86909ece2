import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.intrinsic.distance import Distance
from music_tf.networks.embedding import SPEED, Embedding
from music_tf.networks.parameters import Layout
from music_tf.networks.reward_networks import embedding_of
from music_tf.recipes.distance import DistanceConfig
from tests.kit.cases import cases
from tests.kit.terms import context

SCALE = (np.float32([1.0, -2.0]), np.float32([0.5, 4.0]))


def saved(constraint="dual", scale=SCALE):
    """A term with random weights, and the arrays and facts that a checkpoint has of it."""
    settings = DistanceConfig(
        hidden_sizes=(8, 8), constraint=constraint, columns=(3, 4), normalize_inputs=True
    )
    made = context(skills=2, scale=scale)._replace(condition=ConditionConfig(kind="sphere", size=2))
    term = Distance(settings, made)
    layout = Layout(term.networks)
    flat = np.random.default_rng(1).normal(size=layout.size).astype(np.float32)
    arrays = {f"parameters/{name}": array for name, array in layout.name_arrays(flat).items()}
    return term, layout.split(flat), arrays | term.shared(), settings


@pytest.mark.parametrize("constraint", ["dual", "spectral"])
def test_directions_are_those_of_the_term_that_learned_them(constraint):
    term, weights, arrays, settings = saved(constraint)
    found = embedding_of(arrays, {"components": [3, 4]}, settings, "sphere", 2, 6)
    before, after = np.random.default_rng(0).normal(size=(2, 9, 2)).astype(np.float32)
    way = found.way(before, after)
    np.testing.assert_allclose(way, term._step(weights, before, after), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.leading(before, after), found.towards(way))
    np.testing.assert_allclose(found.distance(before, after), np.linalg.norm(way, axis=-1))
    assert found.columns == (3, 4)


@cases(
    ("condition", "way", "towards"),
    ("sphere", (3.0, -4.0), (0.6, -0.8)),
    ("gaussian", (3.0, -4.0), (0.6 * 2**0.5, -0.8 * 2**0.5)),
    ("one_hot", (3.0, -4.0), (1.0, 0.0)),
    ("sphere", (0.0, 0.0), (1.0, 0.0)),
    ("sphere", (3e30, -4e30), (0.6, -0.8)),
    ("ball", (3.0, -4.0), (0.6, -0.8)),
)
def test_a_direction_becomes_the_condition_that_leads_there(condition, way, towards):
    _, _, arrays, settings = saved()
    arrays |= {SPEED: np.float32(1.0)}
    found = embedding_of(arrays, {"components": [3, 4]}, settings, condition, 2, 6)
    np.testing.assert_allclose(found.towards(np.float32([way])), [towards], rtol=1e-6)


@cases(("there", "length"), ((6.0, 0.0), 1.0), ((0.0, 3.0), 0.5), ((0.375, 0.0), 0.5), ((0, 0), 0))
def test_velocities_fall_within_a_step_and_a_half_of_a_goal(there, length):
    _, _, arrays, settings = saved()  # inputs in units of 0.5 and 4
    arrays |= {SPEED: np.float32(1.0)}
    found = embedding_of(arrays, {"components": [3, 4]}, settings, "ball", 2, 6)
    z = found.leading(np.zeros([1, 2], np.float32), np.float32([there]))
    assert np.linalg.norm(z) == pytest.approx(length)


@cases(
    ("way", "towards"),  # of two objects, which are at their goals within 0.75
    ((3.0, 0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 1.0)),  # the nearer one first
    ((0.9, 0.0, 0.0, 2.0), (0.6, 0.0, 0.0, 0.0)),
    ((0.7, 0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 1.0)),  # and then the other one
    ((0.3, 0.0, 0.0, -0.6), (0.0, 0.0, 0.0, -0.4)),
    ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
)
def test_of_two_objects_one_is_led(way, towards):
    weights = [np.eye(4, dtype=np.float32), np.zeros(4, np.float32)]
    leads = Embedding(weights, None, (0, 1, 2, 3), "ball", 1.5, 2)
    there = np.float32([way, [0.0, 0.0, 9.0, 0.0]])
    led = leads.leading(np.zeros_like(there), there)
    np.testing.assert_allclose(led, [towards, (0, 0, 1, 0)], rtol=1e-6)


def test_a_condition_that_is_a_place_depends_on_the_goal_alone():
    arrays = {"parameters/phi/point/kernel": 2.0 * np.eye(2, dtype=np.float32)}
    arrays |= {"parameters/phi/point/bias": np.ones(2, np.float32), "scales/phi": np.stack(SCALE)}
    settings = DistanceConfig(hidden_sizes=(), columns=(3, 4), reach=4.0)
    found = embedding_of(arrays, {"components": [3, 4]}, settings, "ball", 2, 6)
    here, there = np.random.default_rng(0).normal(size=(9, 2)), np.float32([1.4, -4.4])
    place = [0.4 / 0.5 * 2.0 / 4.0, -2.4 / 4.0 * 2.0 / 4.0]  # from the mean of the inputs
    np.testing.assert_allclose(found.leading(here, np.tile(there, (9, 1))), [place] * 9, rtol=1e-5)
    np.testing.assert_allclose(found.leading(here[0], np.float32([1e3, -2.0])), [1.0, 0.0])


@cases(
    ("change", "text"),
    ({"parameters/phi/hidden_1/kernel": np.zeros([8, 9])}, r"hidden_1/kernel: expected \(8, 8\)"),
    ({"parameters/phi/point/bias": np.zeros([3])}, r"point/bias: expected \(2,\), found \(3,\)"),
    ({"scales/phi": np.zeros([2, 5])}, "what it sees does not fit its 2 inputs"),
    ({"parameters/phi/hidden_0/kernel": np.float32(1.0)}, r"expected a matrix, found \(\)"),
    ({}, "scales/phi/speed: expected a number above 0, found 0"),
    ({SPEED: np.float32(np.inf)}, "scales/phi/speed: expected a number above 0, found inf"),
    ({SPEED: np.ones(2)}, "scales/phi/speed: expected a number above 0"),
)
def test_what_does_not_fit_is_named(change, text):
    _, _, arrays, settings = saved()
    with pytest.raises(ValueError, match=text):
        embedding_of(arrays | change, {"components": [3, 4]}, settings, "ball", 2, 6)
    with pytest.raises(ValueError, match="columns of the observation, 0 to 3, found 4"):
        embedding_of(arrays, {"components": [3, 4]}, settings, "ball", 2, 4)
    assert embedding_of({}, {}, settings, "ball", 2, 6) is None
