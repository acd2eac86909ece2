"""Demonstrations in the stores of workers: kept, drawn, and relabelled where they have no goal."""

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.replay.buffer import ReplayBuffer, Shard
from tests.kit.cases import cases
from tests.kit.episodes import SPEC, STEPS, goal_reward, make_episodes, numbers_in, rng

DRAWS = (4000, 10)


def shard_of(demonstrations=2, capacity=5, first=1, **config):  # episodes `first`, ... are kept
    shard = Shard(SPEC, 1, ReplayConfig(capacity=capacity * STEPS, **config))
    priorities = np.zeros(demonstrations, np.float32)
    shard.add(make_episodes(first, demonstrations), rng(), priorities)
    shard.kept = demonstrations
    return shard


def test_the_oldest_are_overwritten_behind_the_demonstrations():
    shard = shard_of(overwrite="oldest")
    for first, held in ((3, [1, 2, 6, 4, 5]), (7, [1, 2, 10, 8, 9]), (11, [1, 2, 14, 12, 13])):
        # each call adds four: three slots are free to be overwritten, in turn
        shard.add(make_episodes(first, 4), rng())
        assert sorted(numbers_in(shard)[2:]) == sorted(held[2:])
        assert numbers_in(shard)[:2] == [1, 2]


def test_random_ones_are_overwritten_behind_the_demonstrations_all_alike():
    shard, written = shard_of(overwrite="random"), []
    shard.add(make_episodes(3, 3), rng())
    for number in range(6, 606):
        written += shard.add(make_episodes(number), rng(number)).tolist()
    assert numbers_in(shard)[:2] == [1, 2]
    # 600 draws of three: five standard deviations of a share are 0.096
    assert np.bincount(written, minlength=5) / 600 == pytest.approx([0, 0, *[1 / 3] * 3], abs=0.1)


@cases(("by_priority", "others"), (False, [1 / 3] * 3), (True, [0, 1 / 3, 2 / 3]))
def test_their_share_of_draws_is_theirs_alone(by_priority, others):
    shard = shard_of(demonstration_share=0.25, priority="music")
    shard.add(make_episodes(3, 3), rng(), np.array([0.0, 1.0, 2.0], np.float32))
    slots = shard.pick(DRAWS, rng(), by_priority).slot
    expected = [0.125, 0.125, *(0.75 * share for share in others)]
    # 40,000 draws: five standard deviations of a share are 0.0125 or less
    assert np.bincount(slots.ravel(), minlength=5) / slots.size == pytest.approx(
        expected, abs=0.013
    )


def test_one_without_a_goal_is_drawn_with_goals_that_it_reached_alone():
    shard = shard_of(first=0, demonstration_share=0.5, relabel_k=1.0)  # episode 0 has the goal 0
    shard.add(make_episodes(0, 2), rng())  # goals of zeros that a run was given
    slot, _, goal = shard.pick(DRAWS, rng())
    own = [float((goal[slot == number] < 0).mean()) for number in range(4)]
    assert own == pytest.approx([0.0, 0.5, 0.5, 0.5], abs=0.03)


def test_without_demonstrations_nothing_more_is_drawn():
    shard, expected = shard_of(0, relabel_k=4.0), rng(3)
    shard.add(make_episodes(1, 7), rng())
    picks = shard.pick((9, 4), rng(3))
    slot = expected.integers(5, size=(9, 4))
    time = (expected.random((9, 4)) * STEPS).astype(int)
    relabelled = expected.random((9, 4)) < 0.8
    later = time + 1 + (expected.random((9, 4)) * (STEPS - time)).astype(int)
    np.testing.assert_array_equal(picks.slot, slot)
    np.testing.assert_array_equal(picks.time, time)
    np.testing.assert_array_equal(picks.goal, np.where(relabelled, later, -1))


def test_a_worker_keeps_every_wth_whatever_other_workers_its_rank_has():
    shards = {worker: shard_of(0) for worker in (1, 3)}
    replay = ReplayBuffer(shards, ReplayConfig(), goal_reward, 0.9, seed=1)
    replay.keep(10, workers=4)
    # 10 demonstrations of workers 0 1 2 3 0 1 2 3 0 1
    assert {worker: shard.kept for worker, shard in shards.items()} == {1: 3, 3: 2}
    replay.forget()
    assert [replay.demonstrations, *(shard.kept for shard in shards.values())] == [0, 0, 0]


def test_a_checkpoint_that_lacks_some_is_refused():
    shard = shard_of(2)
    saved = [shard.unsaved()]
    shard.check_rows(saved)
    shard.kept = 3
    with pytest.raises(ValueError, match="2 of 3 episodes are there"):
        shard.check_rows(saved)
