import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.terms import TaskConfig
from music_tf.intrinsic.base import Mixing, paid_for, schedule_value
from music_tf.intrinsic.task import TaskReward
from music_tf.recipes.music import MusicConfig
from tests.kit.cases import cases
from tests.kit.terms import context, made_transition

MUSIC = Mixing(5000.0, (0.0, 1.0), -1.0, ((0.0, 1.0),))
PUBLISHED = ((0.0, 0.2), (24.0, 0.2), (200.0, 1.0))


def mixed(mixing, rewards, weight=1.0):
    return mixing(tf.constant(rewards, tf.float32), tf.constant(weight)).numpy()


def test_a_term_is_scaled_clipped_shifted_and_weighted_in_this_order():
    # 0.5 * (clip(5000 * (-0.1, 1e-4, 0.3), 0, 1) - 1) = 0.5 * ((0, 0.5, 1) - 1)
    np.testing.assert_allclose(mixed(MUSIC, [-0.1, 1e-4, 0.3], 0.5), [-0.5, -0.25, 0.0], atol=1e-6)


def test_a_logarithm_goes_on_rising_where_a_clip_does_not_and_keeps_the_order_of_steps():
    rising = Mixing(3000.0, (0.0, 4.0), 0.0, ((0.0, 1.0),), "log")
    # log(1 + 3000 m): 0 below 0, log 4 at a millinat, log 16 at five, log 61 = 4.1 -> 4 at twenty
    raw = [-0.5, 0.0, 0.001, 0.005, 0.02]
    expected = [0.0, 0.0, math.log(4.0), math.log(16.0), 4.0]
    np.testing.assert_allclose(mixed(rising, raw), expected, rtol=1e-5, atol=1e-7)
    # 2 * (clip(log 4, 0, 1) - 1) = 0
    low = rising._replace(clip=(0.0, 1.0), shift=-1.0)
    np.testing.assert_allclose(mixed(low, [0.001, 0.0], 2.0), [0.0, -2.0], atol=1e-6)
    assert (rising.bounds, low.bounds) == ((0.0, 4.0), (-1.0, 0.0))
    raw = np.sort(np.random.default_rng(0).normal(size=200)).astype(np.float32)
    paid = paid_for(tf.constant(raw), "log", (0.0, math.inf)).numpy()
    assert (np.diff(paid[raw > 0]) > 0).all()
    assert (paid[raw <= 0] == 0).all()


def test_bounds_on_both_sides_of_zero_pay_nothing_for_noise():
    both = Mixing(2.0, (-4.0, 4.0), 0.0, ((0.0, 1.0),), "log")
    # log(1 + 2 * 0.5) = log 2 on either side; log 201 = 5.3 is cut at 4
    expected = [math.log(2.0), -math.log(2.0), 4.0, -4.0, 0.0]
    np.testing.assert_allclose(mixed(both, [0.5, -0.5, 100.0, -100.0, 0.0]), expected, rtol=1e-6)
    noise = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    for_noise = [mixed(pay, noise).mean() for pay in (both, both._replace(clip=(0.0, 4.0)))]
    assert abs(for_noise[0]) < 0.01  # its deviation is 0.96, so 0.003 of a mean
    assert for_noise[1] > 0.4
    assert MusicConfig(pay="log", clip=(-4.0, 4.0)).clip == (-4.0, 4.0)


def test_bounds_are_what_a_term_can_pay_at_any_time_and_the_lowest_value_what_it_can_now():
    assert MUSIC.bounds == (-1.0, 0.0)
    # weights 0.2 and 1 times (clip + shift) = (-1, 0)
    assert MUSIC._replace(weight=PUBLISHED).bounds == (-1.0, 0.0)
    assert MUSIC._replace(shift=0.0, weight=((0.0, 0.5),)).bounds == (0.0, 0.5)
    # a negative weight turns the ends round: -2 * (-1, 0) = (2, 0), 1 * (-1, 0)
    assert MUSIC._replace(weight=((0.0, 1.0), (9.0, -2.0))).bounds == (-1.0, 2.0)
    assert Mixing(1.0, (-math.inf, 0.0), 0.0, ((0.0, 1.0),)).bounds == (-math.inf, 0.0)
    # costs of 1 to 2, and nothing at all before epoch 5
    assert Mixing(1.0, (-1.0, 0.0), -1.0, ((5.0, 0.0), (8.0, 1.0))).bounds == (-2.0, 0.0)
    assert Mixing(1.0, (-math.inf, math.inf), 0.0, ((0.0, 0.0),)).bounds == (0.0, 0.0)
    assert float(MUSIC.lowest(tf.constant(0.5))) == -0.5
    turned = MUSIC._replace(weight=((0.0, 1.0), (9.0, -2.0)))  # pays from 2 down to 0 then
    assert float(turned.lowest(tf.constant(-2.0))) == 0.0
    assert float(turned.lowest(tf.constant(1.0))) == -1.0


@cases(
    ("epoch", "value"),
    (-1, 0.2),
    (0, 0.2),
    (24, 0.2),
    (112, 0.6),  # half way from 24 to 200, so 0.2 + 0.8 / 2
    (200, 1.0),
    (10_000, 1.0),
)
def test_schedules_are_linear_between_their_points_and_constant_outside(epoch, value):
    assert schedule_value(PUBLISHED, epoch) == pytest.approx(value)


@cases(
    ("scale", "bounds", "clip"),
    (1.0, (-1.0, 0.0), (-1.0, 0.0)),
    (3.0, (0.0, 1.0), (0.0, 3.0)),
    (-2.0, (-1.0, 0.0), (0.0, 2.0)),
    (1.0, (-math.inf, 0.0), (-math.inf, 0.0)),
    (0.0, (-math.inf, 0.0), (0.0, 0.0)),
)
def test_without_a_clip_the_task_reward_has_the_bounds_of_its_environment(scale, bounds, clip):
    assert TaskReward(TaskConfig(scale=scale), context(reward_bounds=bounds)).mixing.clip == clip


def test_a_term_of_scale_zero_is_gone_with_its_shift():
    silent = MUSIC._replace(scale=0.0)
    np.testing.assert_array_equal(mixed(silent, [-0.1, 0.3]), [0.0, 0.0])
    assert (float(silent.lowest(tf.constant(1.0))), silent.bounds) == (0.0, (0.0, 0.0))
    assert (float(MUSIC.lowest(tf.constant(1.0))), MUSIC.bounds) == (-1.0, (-1.0, 0.0))


def test_the_task_reward_is_the_replayed_one():
    batch = made_transition(reward=tf.constant([[-1.0, 0.0]]))
    settings = TaskConfig(scale=2.0, clip=(-1.5, 1.0), shift=0.5)
    term = TaskReward(settings, context(reward_bounds=(-1.0, 0.0)))
    assert (term.mixing.clip, term.networks) == ((-1.5, 0.0), ())
    reward = term.reward({}, batch, {})
    np.testing.assert_array_equal(reward, [[-1.0, 0.0]])
    np.testing.assert_allclose(mixed(term.mixing, reward), [[-1.0, 0.5]])  # -2 -> -1.5 + 0.5


@cases(
    ("weight", "epoch", "retired"),
    (((0.0, 1.0), (4.0, 0.0)), 3.9, False),  # 0.025
    (((0.0, 1.0), (4.0, 0.0)), 4.0, True),
    (((0.0, 1.0), (4.0, 0.0)), 100.0, True),
    (((0.0, 0.0), (4.0, 1.0)), 0.0, False),  # nothing yet
    (((0.0, 1.0), (2.0, 0.0), (5.0, 0.0), (6.0, 0.5)), 3.0, False),  # comes back
    (((0.0, 0.0),), 0.0, True),
    (((0.0, 1.0),), 1e6, False),
)
def test_a_term_retires_when_its_weight_is_zero_for_good(weight, epoch, retired):
    assert MUSIC._replace(weight=weight).retired(epoch) is retired
    assert MUSIC._replace(weight=weight, scale=0.0).retired(epoch)
