import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from music_tf import recipes
from music_tf.intrinsic.joint_motion import JointMotion
from music_tf.intrinsic.random_reward import RandomReward
from music_tf.recipes.controls import JointMotionConfig, RandomRewardConfig
from music_tf.recipes.music import MusicConfig
from music_tf.types import SplitSpec
from tests.intrinsic.test_music import replay_of
from tests.kit.cases import cases
from tests.kit.small import MUSIC, go_on, paying, trainer_of
from tests.kit.terms import context, transitions

SPLIT = SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5))


def joint_motion(**settings):
    return JointMotion(JointMotionConfig(gain="auto", shift=0.0, **settings), context(SPLIT))


def steps(moving, count):
    """A minibatch of steps in which gripper and object both move, or neither does; two workers."""
    before = np.zeros([2, count, 25], np.float32)
    after = before.copy()
    after[:, :moving, [0, 3]] = 0.01
    return transitions(before, after)


def after_one(term, batch):  # gain of a term that has seen a minibatch, and what it pays there then
    raw = []
    for _ in range(2):
        feed = term.steady_feed(2)
        paid = term.reward({}, batch, feed)
        measured = term.measures(paid, batch, feed)
        raw.append(float(np.mean(list(measured.values()))))
        term.adapt({name: raw[-1] for name in measured}, 40)
    assert raw[1] == pytest.approx(raw[0])  # what is measured does not depend on the gain
    return term.gain, paid.numpy()


def test_joint_motion_pays_where_both_move_more_than_a_threshold():
    moved = [
        (0.002, 0, 0, 0, 0.002, 0),  # both by 2 mm
        (0.002, 0, 0, 0, 0, 0),  # the gripper alone
        (0, 0, 0, 0.002, 0, 0),  # the object alone
        (0.0008, 0.0008, 0, 0, -0.0008, 0.0008),  # both by 1.13 mm, in two directions at once
        (0.0008, 0, 0, 0.0008, 0, 0),  # both by 0.8 mm
        (0, 0, 0, 0, 0, 0),
    ]
    before = np.full([1, len(moved), 25], 0.5, np.float32)
    after = before.copy()
    after[0, :, :6] += np.float32(moved)
    for settings, expected in (
        ({}, [0, -1, -1, 0, -1, -1]),
        ({"shift": 0.0, "threshold": 0.0005}, [1, 0, 0, 1, 1, 0]),
    ):
        term = JointMotion(JointMotionConfig(**settings), context(SPLIT))
        paid = term.mixing(term.reward({}, transitions(before, after), {}), tf.constant(1.0))
        np.testing.assert_array_equal(paid, [expected])


@pytest.mark.parametrize("preset", recipes.PRESETS)
def test_the_recipe_of_joint_motion_differs_from_music_by_its_reward_alone(preset):
    ours, music = (recipes.resolve(name, preset) for name in ("ddpg_joint_motion", "ddpg_music"))
    assert ours.rewards["joint_motion"].shift == music.rewards["music"].shift
    assert dataclasses.replace(ours, rewards=music.rewards) == music


def test_the_gain_makes_the_mean_what_was_asked_for_or_is_one_factor_and_is_taken_over():
    # 1 of 4 steps moves: 0.3 / 0.25 = 1.2, of which a quarter is 0.3
    gain, scaled = after_one(joint_motion(mean=0.3), steps(1, 4))
    assert gain == pytest.approx(1.2)
    assert scaled.mean() == pytest.approx(0.3)
    assert after_one(joint_motion(mean=0.3), steps(2, 40))[0] == pytest.approx(6.0)
    term, other = joint_motion(), joint_motion()
    after_one(term, steps(1, 4))
    assert set(term.shared()) == {"scales/joint_motion"}
    other.load(term.shared())
    assert other.gain == term.gain != 1.0
    fixed = JointMotion(JointMotionConfig(gain=2.5, shift=0.0), context(SPLIT))
    assert (fixed.gain, fixed.steady_feed(2), fixed.shared()) == (2.5, {}, {})
    batch = steps(1, 4)
    assert fixed.measures(fixed.reward({}, batch, {}), batch, {}) == {}
    np.testing.assert_array_equal(fixed.reward({}, batch, {})[0], [1, 0, 0, 0])


def test_the_gain_follows_a_mean_over_a_thousand_updates():
    term, mean = joint_motion(mean=0.25), JointMotionConfig.measured[0]
    term.adapt({mean: 0.001}, 1000)
    assert term.gain == pytest.approx(250.0)  # the first measure is all that is known
    assert term.adapt({"train/mean_q": 1.0}, 1000) == {}  # nothing was measured
    assert term.gain == pytest.approx(250.0)
    keep = 0.999**500
    term.adapt({mean: 0.003}, 500)
    first, second = (1 - 0.999**1000) * keep, 1 - keep
    assert term.gain == pytest.approx(0.25 * (first + second) / (0.001 * first + 0.003 * second))
    for _ in range(10):
        term.adapt({mean: 0.0}, 10_000)
    assert term.gain == pytest.approx(0.25 / 1e-6)  # nothing moves: rounding is not paid
    with pytest.raises(ValueError, match="broadcast"):
        term.load({"scales/joint_motion": np.zeros(3)})


def test_random_rewards_do_not_look_at_what_was_done():
    term = RandomReward(RandomRewardConfig(), context(SPLIT, seed=3))
    replay = replay_of(0.5, 0.5, count=2)
    feed, again, later = (term.feed(replay, 50, cycle) for cycle in (0, 0, 1))
    assert feed["drawn"].shape == (50, 2, replay.batch_size)
    np.testing.assert_array_equal(feed["drawn"], again["drawn"])
    assert (feed["drawn"] != later["drawn"]).any()
    assert (feed["drawn"][:, 0] != feed["drawn"][:, 1]).any()  # each worker has its own
    assert 0.0 <= feed["drawn"].min() < feed["drawn"].max() < 1.0
    assert feed["drawn"].mean() == pytest.approx(0.5, abs=0.01)
    one = {"drawn": feed["drawn"][0]}
    np.testing.assert_array_equal(term.reward({}, None, one), one["drawn"])


@pytest.mark.thorough
@cases(
    "term",
    MusicConfig(gain="auto", pay="log", clip=(0.0, 4.0), trajectories=8),
    JointMotionConfig(gain="auto", pay="log", clip=(0.0, 4.0)),
    RandomRewardConfig(gain="auto", pay="log", clip=(0.0, 4.0)),
    ids=lambda term: term.name,
)
def test_a_run_is_paid_by_a_logarithm_and_a_gain_that_follows(term):
    metrics = trainer_of(paying(MUSIC, term)).run_epoch(go_on)
    mean, gain = (metrics.get(name) for name in term.measured)
    assert mean >= 0.0
    assert gain > 0.0
    assert term.shift <= metrics[f"reward/{term.name}_min"]
    assert metrics[f"reward/{term.name}_max"] <= 4.0 + term.shift
