import numpy as np
import pytest

from music_tf.config.settings import Config, ReplayConfig
from music_tf.config.terms import TaskConfig
from music_tf.errors import UsageError
from music_tf.recipes.music import MusicConfig
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.hindsight import draw_probabilities
from tests.kit.cases import cases
from tests.kit.drawn import sample_trajectories, sample_transitions
from tests.kit.episodes import SPEC, STEPS, goal_reward, make_episodes, places


def floats(*values):
    return np.array(values, np.float32)


@cases(
    ("priorities", "probabilities"),
    ((0, 0, 3, 5), [0, 0, 1 / 3, 2 / 3]),
    ((5, 0.1, 5, 0.2), [2 / 5, 0, 2 / 5, 1 / 5]),
    ((0, 0, 0), [1 / 3, 1 / 3, 1 / 3]),
    ((0.3,), [1.0]),
)
def test_episodes_are_drawn_by_dense_rank(priorities, probabilities):
    assert draw_probabilities(floats(*priorities)).tolist() == pytest.approx(probabilities)


def prioritized(priority, capacity=4):
    config = ReplayConfig(capacity=capacity * STEPS, batch_size=400, priority="music")
    buffer = ReplayBuffer({3: Shard(SPEC, 1, config)}, config, goal_reward, 0.9, seed=1)
    buffer.add({3: make_episodes(0, len(priority))}, 0, {3: floats(*priority)})
    return buffer


def shares(numbers, count=4):
    return np.bincount(np.ravel(numbers), minlength=count) / np.size(numbers)


def test_the_learner_sees_episodes_by_rank_and_the_lowest_never():
    found = shares(places(sample_transitions(prioritized((0, 0, 3, 5)), 10, 0))[0])
    assert found[:2].tolist() == [0.0, 0.0]
    # 4000 draws: five standard deviations of a share of 2/3 are 0.037
    assert found[2:] == pytest.approx([1 / 3, 2 / 3], abs=0.037)


def by_trajectories(buffer):
    buffer.shards[3].arrays["length"][:4] = np.arange(1, 5)
    return sample_trajectories(buffer, 10, 400, 0)[1] - 1


def by_fresh_episodes(buffer):
    fresh = {3: make_episodes(0, 4)}
    states = [buffer.sample_fresh(fresh, cycle)[0] for cycle in range(200)]
    return np.array(states)[..., 0].astype(int) // 100


@cases(
    "sample",
    lambda buffer: places(sample_transitions(buffer, 10, 0, "skill/transitions"))[0],
    by_fresh_episodes,
    by_trajectories,
    ids=["skills", "normaliser", "trajectories"],
)
def test_only_actor_and_critics_sample_by_priority(sample):
    assert shares(sample(prioritized((0, 0, 3, 5)))) == pytest.approx([1 / 4] * 4, abs=0.035)


def test_without_priorities_none_are_stored():
    assert "priority" not in Shard(SPEC, 1, ReplayConfig(capacity=STEPS)).arrays


@cases(
    ("reward", "priority"),
    (TaskConfig(), "music"),
    (MusicConfig(gain=0.0), "music"),
    (TaskConfig(), "task"),
    ids=["no network", "no gain", "no priorities"],
)
def test_priorities_need_a_reward_that_ranks_episodes(reward, priority):
    with pytest.raises(UsageError, match=rf"^replay\.priority: .*'{priority}'; this run has unif"):
        Config(replay=ReplayConfig(priority=priority), rewards={reward.name: reward})
