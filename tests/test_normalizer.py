import dataclasses

import numpy as np
import pytest

from music_tf.config.settings import NormalizerConfig
from music_tf.distributed import Communicator
from music_tf.errors import NumbersFault
from music_tf.networks.acting import Moments, NetworkInputs
from music_tf.normalizer import InputMoments, Normalizer
from music_tf.types import EnvSpec, Reach
from tests.kit.cases import cases

WIDE = NormalizerConfig(epsilon=1e-6, input_clip=1e6)


def normalizer(size=1, config=WIDE):
    return Normalizer(size, config, Communicator())


def rows(*values):  # one component, workers by rows
    return np.float32(values)[..., None]


@cases(
    ("config", "values", "mean", "variance"),
    # mean (1 + 2 + 6) / (1 + 3) = 2.25; variance (1 + 4 + 36) / 4 - 2.25^2 = 5.1875
    (WIDE, [[1.0, 2.0, 6.0]], 2.25, 5.1875),
    # S / W = 12 / 2 = 6, 1 + N / W = 1 + 4 / 2 = 3, mean 2;
    # S2 / W = (1 + 4 + 36 + 9) / 2 = 25, variance 25 / 3 - 4 = 13 / 3
    (WIDE, [[1.0, 2.0], [6.0, 3.0]], 2.0, 13 / 3),
    (NormalizerConfig(epsilon=0.01), [[0.0] * 9], 0.0, 0.0001),
    # (2 - 2 + 2) / (1 + 3) = 0.5 and (4 + 4 + 4) / 4 - 0.5^2 = 2.75
    (NormalizerConfig(input_clip=2.0), [[100.0, -100.0, 2.0]], 0.5, 2.75),
    ids=["beside a row of zeros", "a row of zeros for each worker", "a floor", "bounded raw"],
)
def test_moments_by_hand(config, values, mean, variance):
    one = normalizer(config=config)
    assert (one.moments.mean, one.moments.deviation) == ([0], [1])  # before any row
    one.update(rows(*values), workers=len(values))
    np.testing.assert_allclose(one.moments.mean, [mean])
    np.testing.assert_allclose(one.moments.deviation, [np.sqrt(variance)], rtol=1e-6)


def test_updates_add_up_to_the_moments_of_the_data():
    parts, whole = normalizer(2), normalizer(2)
    values = np.random.default_rng(0).normal(3.0, 2.0, (2, 10, 2)).astype(np.float32)
    parts.update(values[:, :4], workers=2)
    parts.update(values[:, 4:], workers=2)
    whole.update(values, workers=2)
    np.testing.assert_allclose(parts.state, whole.state, rtol=1e-12)
    np.testing.assert_allclose(parts.moments.mean, whole.moments.mean, rtol=1e-6)


def test_the_state_is_a_copy_of_one_size_and_an_earlier_one_brings_its_moments_back():
    one, start = normalizer(2), normalizer(2)
    start.state[:] = 7.0
    np.testing.assert_array_equal(start.state, [0.0] * 4 + [1.0])
    one.update(np.float32([[[3.0, 4.0]]]), workers=1)
    one.state = start.state
    np.testing.assert_equal(one.moments, start.moments)
    with pytest.raises(ValueError, match=r"expected totals of shape \(3,\), got \(5,\)"):
        normalizer(1).state = normalizer(2).state


def test_rows_that_are_not_finite_are_a_fault_and_do_not_count():
    one = normalizer()
    one.update(rows([1.0, 2.0]), 1)
    before = one.state
    with pytest.raises(NumbersFault, match="running moments"):
        one.update(rows([1.0, np.nan]), 1)
    np.testing.assert_array_equal(one.state, before)
    with pytest.raises(ValueError, match="finite totals"):
        one.state = np.array([0.0, np.inf, 2.0])


def test_network_inputs_are_clipped_normalised_clipped_and_joined():
    inputs = NetworkInputs(
        observation=Moments(np.float32([1.0, 0.0]), np.float32([2.0, 0.1])),
        goal=Moments(np.float32([0.5]), np.float32([0.01])),
        config=NormalizerConfig(clip=5.0, input_clip=20.0),
        condition=2,
    )
    # (4 - 1) / 2 = 1.5; 0.3 / 0.1 = 3; the skill as it is; (0.52 - 0.5) / 0.01 = 2
    found = inputs(np.float32([[4.0, 0.3]]), np.float32([[0.52]]), np.float32([[0.0, 1.0]]))
    np.testing.assert_allclose(found, [[1.5, 3.0, 0.0, 1.0, 2.0]], rtol=1e-4)
    assert found.dtype == np.float32
    # (min(100, 20) - 1) / 2 = 9.5 -> 5 and -20 / 0.1 -> -5; far goals saturate too
    found = inputs(np.float32([[100.0, -100.0]]), np.float32([[0.0]]), np.float32([[9.0, 9.0]]))
    np.testing.assert_allclose(found, [[5.0, -5.0, 9.0, 9.0, -5.0]], rtol=1e-6)
    wide = inputs._replace(config=NormalizerConfig(clip=100.0, input_clip=20.0))
    found = wide(np.float32([[100.0, 0.0]]), np.float32([[0.5]]), np.zeros([1, 0], np.float32))
    np.testing.assert_allclose(found, [[9.5, 0.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize(("seen", "expected"), [(0, []), (1, [0.5]), (2, [0.5, 7.0])])
def test_networks_read_the_first_numbers_of_a_condition_alone(seen, expected):
    none = Moments(np.zeros(0, np.float32), np.ones(0, np.float32))
    inputs = NetworkInputs(none, none, NormalizerConfig(), condition=seen)
    rows = np.zeros([1, 0], np.float32)
    np.testing.assert_array_equal(inputs(rows, rows, np.float32([[0.5, 7.0]])), [expected])


def test_moments_of_offsets_are_those_of_the_same_columns():
    spec = EnvSpec(env_id="toy", observation_dim=2, goal_dim=1, action_dim=1, max_episode_steps=10)
    each = [dataclasses.replace(spec, reach=Reach((n,), (1 - n,), 0.1, (-1, 0))) for n in (0, 1)]
    one, other = (InputMoments(of, NormalizerConfig(), 0, Communicator()) for of in each)
    one.load(one.shared())
    with pytest.raises(ValueError, match=r"reach: expected columns \[\[0\], \[1\]\], found \[\[1"):
        one.load(other.shared())


def test_moments_that_do_not_run_leave_inputs_as_they_are():
    seen = np.float32([[[3.0, -7.0], [5.0, 9.0]]])
    spec = EnvSpec(env_id="toy", observation_dim=2, goal_dim=0, action_dim=1, max_episode_steps=10)
    moments = InputMoments(spec, NormalizerConfig(running=False, clip=1e6), 0, Communicator())
    moments.see(seen, np.zeros([1, 2, 0], np.float32), 1)
    none = np.zeros([1, 0], np.float32)
    np.testing.assert_array_equal(moments.now(seen[0, :1], none, none), [[3.0, -7.0]])
    running = InputMoments(spec, NormalizerConfig(), 0, Communicator())
    running.see(seen, np.zeros([1, 2, 0], np.float32), 1)
    assert running.now(seen[0, :1], none, none)[0, 0] != 3.0
