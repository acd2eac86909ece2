import numpy as np
import pytest

from music_tf.config.settings import Config, MusicConfig, ReplayConfig
from music_tf.errors import UsageError
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.replay.hindsight import dense_ranks, draw_probabilities
from tests.kit.episodes import SPEC, STEPS, goal_reward, make_episodes, places


def floats(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("priorities", "ranks", "probabilities"),
    [
        ((0, 0, 3, 5), [0, 0, 1, 2], [0, 0, 1 / 3, 2 / 3]),
        ((5, 0.1, 5, 0.2), [2, 0, 2, 1], [2 / 5, 0, 2 / 5, 1 / 5]),
        ((0, 0, 0), [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]),
        ((7, 7), [0, 0], [1 / 2, 1 / 2]),
        ((0.3,), [0], [1.0]),
    ],
)
def test_episodes_are_drawn_by_dense_rank(priorities, ranks, probabilities):
    assert dense_ranks(floats(*priorities)).tolist() == ranks
    assert draw_probabilities(floats(*priorities)).tolist() == pytest.approx(probabilities)


def prioritized(priority, capacity=4):
    config = ReplayConfig(capacity=capacity * STEPS, batch_size=400, priority="music")
    shard = Shard(SPEC, 1, config)
    buffer = ReplayBuffer({3: shard}, config, goal_reward, 0.9, seed=1)
    buffer.add({3: make_episodes(0, len(priority))}, 0, {3: floats(*priority)})
    return buffer


def shares(numbers, count=4):
    return np.bincount(np.ravel(numbers), minlength=count) / np.size(numbers)


def test_the_learner_sees_episodes_by_rank_and_the_lowest_never():
    found = shares(places(prioritized((0, 0, 3, 5)).sample_transitions(10, 0))[0])
    assert found[:2].tolist() == [0.0, 0.0]
    # 4000 draws: five standard deviations of a share of 2/3 are 0.037
    assert found[2:] == pytest.approx([1 / 3, 2 / 3], abs=0.037)


@pytest.mark.parametrize("purpose", ["skill/transitions", "replay/fresh"])
def test_whoever_else_samples_sees_all_alike(purpose):
    buffer = prioritized((0, 0, 3, 5))
    if purpose == "replay/fresh":
        fresh = {3: make_episodes(0, 4)}
        states = [buffer.sample_fresh(fresh, cycle)[0] for cycle in range(200)]
        found = shares(np.array(states)[..., 0].astype(int) // 100)
    else:
        found = shares(places(buffer.sample_transitions(10, 0, purpose))[0])
    assert found == pytest.approx([1 / 4] * 4, abs=0.035)


def test_trajectories_are_drawn_alike():
    buffer = prioritized((0, 0, 3, 5))
    shard = buffer.shards[3]
    shard.arrays["length"][:4] = np.arange(1, 5)
    _, lengths = buffer.sample_trajectories(10, 400, 0)
    assert np.bincount(lengths.ravel())[1:] / 4000 == pytest.approx([1 / 4] * 4, abs=0.035)


def test_priorities_are_saved_and_come_back_with_their_episodes():
    buffer = prioritized((0.5, 0.1, 0.4))
    saved = [buffer.unsaved()[3]]
    buffer.mark_saved()
    buffer.add({3: make_episodes(3, 3)}, 1, {3: floats(0.9, 0.8, 0.7)})  # two of them overwrite
    saved.append(buffer.unsaved()[3])
    again = prioritized(()).shards[3]
    again.restore(saved)
    assert again.size == 4
    np.testing.assert_array_equal(again.arrays["priority"], buffer.shards[3].arrays["priority"])
    expected = {0: 0.5, 1: 0.1, 2: 0.4, 3: 0.9, 4: 0.8, 5: 0.7}
    numbers = -again.arrays["desired_goal"][:, 0]
    assert again.arrays["priority"] == pytest.approx([expected[number] for number in numbers])


def test_without_priorities_none_are_stored():
    assert "priority" not in Shard(SPEC, 1, ReplayConfig(capacity=STEPS)).arrays


@pytest.mark.parametrize(
    "settings",
    [{}, {"rewards": {"music": MusicConfig(gain=0.0)}}],
    ids=["no network", "no gain"],
)
def test_priorities_need_a_network_that_measures(settings):
    with pytest.raises(UsageError, match=r"replay\.priority: 'music' needs the reward music"):
        Config(replay=ReplayConfig(priority="music"), **settings)
