"""Actions in [-1, 1] become actions within bounds, and those become actions in [-1, 1] again."""

import json

import numpy as np
import pytest
from gymnasium.spaces import Box

from music_tf.gate import declared_in
from music_tf.types import Declared, EnvSpec, bounds_of, to_bounds, to_unit
from tests.kit.cases import cases


@cases(
    ("low", "high", "dtype"),
    (0, 2**31 - 1, np.int32),
    (-(2**31), 2**31 - 1, np.int32),
    (-(2**63), 2**63 - 1, np.int64),
    (0, 255, np.uint8),
    (-3, 3, np.int64),
)
def test_whole_numbers_reach_both_bounds_and_stay_between_them(low, high, dtype):
    space = Box(low, high, (1,), dtype)
    spec = EnvSpec(env_id="", observation_dim=1, goal_dim=0, action_dim=1, max_episode_steps=1)
    meta = {"environment": vars(Declared.of(spec, space.low, space.high))}
    bounds = bounds_of(vars(declared_in(json.loads(json.dumps(meta)))))  # as they are stored
    ends = to_bounds(np.array([[-1.0], [1.0]], np.float32), bounds)
    assert (ends.tolist(), ends.dtype) == ([[low], [high]], dtype)
    assert to_unit(np.float32(ends), bounds).tolist() == [[-1.0], [1.0]]
    middle = to_bounds(np.array([[0.5]], np.float32), bounds)
    assert middle.dtype == dtype
    np.testing.assert_allclose(middle, low + 0.75 * (high - low), rtol=1e-6, atol=0.5)


def test_a_component_with_equal_bounds_counts_as_zero():
    bounds = np.float32([0.0, 3.0]), np.float32([12.0, 3.0])
    actions = np.float32([[0.5, 0.7], [-1.0, -0.2]])
    taken = to_bounds(actions, bounds)
    assert taken.tolist() == [[9.0, 3.0], [0.0, 3.0]]
    assert to_unit(taken, bounds).tolist() == [[0.5, 0.0], [-1.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_of_minus_one_and_one_change_no_bit(dtype):
    actions = np.float32(np.random.default_rng(0).uniform(-1.0, 1.0, (100, 2)) ** 9)
    bounds = -np.ones(2, dtype), np.ones(2, dtype)
    taken = to_bounds(actions, bounds)
    np.testing.assert_array_equal(taken, actions)
    np.testing.assert_array_equal(to_unit(taken, bounds), actions)
    assert (taken.dtype, to_unit(taken, bounds).dtype) == (dtype, np.float32)


def test_bounds_without_a_type_are_those_of_single_precision():
    older = {"observation": 1, "goal": 0, "low": [-2.0], "high": [2.0], "steps": 5}
    low, _ = bounds_of(vars(declared_in({"environment": older})))
    assert low.dtype == np.float32
    with pytest.raises(ValueError, match="expected a type of numbers, got 'object'"):
        declared_in({"environment": {**older, "type": "object"}})
