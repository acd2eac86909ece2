"""The ring of steps: every step alike, the oldest give way, and parts of episodes in any length."""

import dataclasses

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.replay.ring import StepRing
from music_tf.replay.rows import transition
from music_tf.types import EnvSpec, Episodes
from tests.kit.cases import cases

LONGEST = 6
SPEC = EnvSpec(
    env_id="numbers", observation_dim=2, goal_dim=0, action_dim=1, max_episode_steps=LONGEST
)
GAMMA = 0.9


def parts(*lengths, first=0, terminated=(), truncated=(), earlier=0.0):
    """Parts whose states are numbered on from `first`; a step has its state's number as action."""
    count = len(lengths)
    length = np.array(lengths)
    begin = first + np.concatenate([[0], np.cumsum(length + 1)[:-1]])
    states = begin[:, None] + np.minimum(np.arange(LONGEST + 1), length[:, None])
    steps = np.arange(LONGEST) < length[:, None]
    return Episodes(
        observation=np.stack([states, -states], axis=-1).astype(np.float32),
        achieved_goal=np.zeros([count, LONGEST + 1, 0], np.float32),
        desired_goal=np.zeros([count, 0], np.float32),
        action=(states[:, :-1] * steps)[..., None].astype(np.float32),
        reward=(states[:, :-1] * steps).astype(np.float32),
        length=length,
        terminated=np.isin(np.arange(count), terminated),
        truncated=np.isin(np.arange(count), truncated),
        lost=np.zeros(count, bool),
        success=np.zeros(count, bool),
        succeeded=np.zeros(count, bool),
        skill=np.ones([count, 1], np.float32),
        earlier_return=np.full(count, earlier, np.float32),
        seed=np.zeros(count, np.int64),
        task=np.zeros(count, np.int64),
        visit=np.zeros(count, np.int64),
        context=np.zeros(count, bool),
        extras={},
    )


def ring(capacity=100, columns=()):
    return StepRing(SPEC, 1, ReplayConfig(capacity=capacity), columns, LONGEST)


def add(store, episodes):
    store.add(episodes, np.random.default_rng(0))


def draw(store, count=2_000, seed=1):
    return transition(store.look_up(store.pick((count,), np.random.default_rng(seed))), GAMMA, None)


def numbers(store):
    return sorted(set(draw(store).observation[:, 0].astype(int).tolist()))


def test_every_step_is_drawn_alike_with_the_state_that_followed_it():
    store = ring()
    add(store, parts(1, 5, 2))  # states 0 1 | 2 3 4 5 6 7 | 8 9 10
    batch = draw(store, 16_000)
    np.testing.assert_array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)
    np.testing.assert_array_equal(batch.action[:, 0], batch.observation[:, 0])
    np.testing.assert_array_equal(batch.reward, batch.observation[:, 0])
    found, counts = np.unique(batch.observation[:, 0].astype(int), return_counts=True)
    assert found.tolist() == [0, 2, 3, 4, 5, 6, 8, 9]  # no last state
    np.testing.assert_allclose(counts, 2_000, atol=200)


def test_only_a_termination_ends_the_future_and_the_time_being_over_is_told_apart():
    store = ring()
    add(store, parts(2, 2, 3, terminated=[0], truncated=[2]))  # 0 1 2 | 3 4 5 | 6 7 8 9
    batch = draw(store)
    expected = np.where(batch.observation[:, 0] == 1, 0.0, np.float32(GAMMA))
    np.testing.assert_array_equal(batch.discount, expected.astype(np.float32))
    np.testing.assert_array_equal(batch.truncated, batch.observation[:, 0] == 8)


@pytest.mark.parametrize("capacity", [7, 10, 11, 23])
def test_the_oldest_parts_give_way_wherever_the_ring_begins_anew(capacity):
    store = ring(capacity)
    first, kept = 0, []
    for turn in range(40):
        length = 1 + turn % LONGEST
        add(store, parts(length, first=first))
        kept.append(list(range(first, first + length)))
        first += length + 1
        while sum(len(steps) + 1 for steps in kept) > capacity:
            kept.pop(0)
        assert numbers(store) == [number for steps in kept for number in steps]
        assert store.size == sum(map(len, kept))
        batch = draw(store)
        np.testing.assert_array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)


def test_returns_are_those_known_now_whatever_was_overwritten_or_is_still_open():
    # one environment; the table is recomputed by hand from the steps that were added
    generator, store = np.random.default_rng(3), ring(40)
    first, seed, so_far, returns, owner = 0, 0, 0.0, {}, {}
    for _ in range(60):
        if generator.random() < 0.4:  # a new episode
            seed, so_far = seed + 1, 0.0
        length = int(generator.integers(1, LONGEST + 1))
        part = parts(length, first=first, earlier=so_far)._replace(seed=np.array([seed]))
        add(store, part)
        so_far += float(part.reward.sum())
        returns[seed] = so_far
        owner |= dict.fromkeys(range(first, first + length), seed)
        first += length + 1
        batch = draw(store, 500)
        expected = [returns[owner[int(number)]] for number in batch.observation[:, 0]]
        np.testing.assert_allclose(batch.episode_return, expected)
    saved = store.everything()
    again = ring(40)
    again.restore([saved])
    np.testing.assert_array_equal(draw(again).episode_return, draw(store).episode_return)


def test_parts_of_many_environments_and_conditions_find_their_episodes():
    store = ring(400)
    for cycle in range(3):  # two environments; the first has two parts a cycle
        batch = parts(1, 2, 3, first=20 * cycle)
        earlier = np.float32([100.0 * cycle, 100.0 * cycle + 50.0, 7.0 * cycle])
        add(store, batch._replace(seed=np.array([5, 5, 6]), earlier_return=earlier))
    found = draw(store)
    expected = {
        5: 250.0 + 42 + 43,  # of the last part
        6: 14.0 + 45 + 46 + 47,
    }
    # states of a cycle: 0 1 | 2 3 4 | 5 6 7 8
    own = np.where(found.observation[:, 0] % 20 < 5, expected[5], expected[6])
    np.testing.assert_allclose(found.episode_return, own)


def test_nothing_continues_an_episode_that_has_ended():
    store, again = ring(), ring()
    for cycle, end in enumerate(({"terminated": [0]}, {"truncated": [0]}, {})):
        batch = parts(2, 2, first=20 * cycle, **end)  # the first of both begins and ends here
        seeds = np.array([7, 8 + cycle])
        add(store, batch._replace(seed=seeds))
    again.restore([store.everything()])
    found, restored = draw(store), draw(again)
    np.testing.assert_array_equal(found.episode_return, restored.episode_return)
    returns = {
        int(state): float(total)
        for state, total in zip(found.observation[:, 0], found.episode_return, strict=True)
    }
    assert (returns[0], returns[20], returns[40]) == (0 + 1, 20 + 21, 40 + 41)


def test_the_normaliser_sees_each_step_once():
    observations, goals = ring().fresh(parts(1, 3), np.random.default_rng(0))
    assert (observations[:, 0].tolist(), goals.shape) == ([0, 2, 3, 4], (4, 0))


def test_trajectories_are_parts_padded_with_their_last_state():
    store = ring(columns=[1])
    add(store, parts(2, 4))
    out = np.empty([3, 50, LONGEST + 1, 1], np.float32)
    slots, lengths = store.pick_trajectories((3, 50), np.random.default_rng(0))
    store.trajectories(slots, out)
    rows = {tuple(row[:, 0].astype(int).tolist()) for row in out.reshape(-1, LONGEST + 1, 1)}
    assert rows == {(0, -1, -2, -2, -2, -2, -2), (-3, -4, -5, -6, -7, -7, -7)}
    assert set(lengths.ravel().tolist()) == {2, 4}


@pytest.mark.parametrize("capacity", [12, 200])
@pytest.mark.parametrize("compact_at", [None, 3])
def test_what_is_saved_in_pieces_draws_the_same_when_restored(capacity, compact_at):
    store, again = ring(capacity), ring(capacity)
    saved, first = [], 0
    for turn in range(6):
        for length in (2, 5, 1 + turn % LONGEST):
            add(store, parts(length, first=first, terminated=[0]))
            first += length + 1
        if turn == compact_at:
            saved = [store.everything()]
        else:
            saved.append(store.unsaved())
        store.mark_saved()
    assert store.unsaved() == {}
    again.check_rows(saved)
    again.restore(saved)
    for one, other in zip(draw(store), draw(again), strict=True):
        np.testing.assert_equal(one, other)
    add(store, parts(4, first=first))
    add(again, parts(4, first=first))
    np.testing.assert_array_equal(draw(store).observation, draw(again).observation)


@cases(
    ("change", "told"),
    ({"length": np.array([2, 0])}, "length lies outside"),
    ({"length": np.array([3, 3])}, "not as many rows as steps"),
    ({"length": np.array([2])}, "not as many rows as episodes"),
    ({"parts": np.array(3)}, "2 of 3 episodes are there"),
)
def test_impossible_rows_are_refused_before_any_is_restored(change, told):
    store = ring()
    add(store, parts(2, 3))
    with pytest.raises(ValueError, match=told):
        ring().check_rows([store.unsaved() | change])


def test_a_million_steps_of_short_episodes_take_little_more_than_their_rows():
    # as of Hopper: 11 numbers, actions of 3, and 20 steps an episode
    spec = dataclasses.replace(SPEC, observation_dim=11, action_dim=3)
    store = StepRing(spec, 1, ReplayConfig(capacity=1_000_000), (), 20)
    wide = parts(*[LONGEST] * 1_000)._replace(
        observation=np.zeros([1_000, 21, 11], np.float32),
        achieved_goal=np.zeros([1_000, 21, 0], np.float32),
        action=np.zeros([1_000, 20, 3], np.float32),
        reward=np.zeros([1_000, 20], np.float32),
        length=np.full(1_000, 20),
    )
    for _ in range(60):
        add(store, wide)
    assert store.size > 950_000
    assert store.bytes <= 1.15 * store.size * 4 * (11 + 3 + 1)


def all_steps(store):  # by number: whether each ends its episode, and the return of that
    drawn = store.look_up(store.pick((2_000,), np.random.default_rng(1)))
    columns = drawn.terminated, drawn.truncated, drawn.episode_return
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(drawn.state["observation"][:, 0].tolist(), rows, strict=True))


def test_a_purge_keeps_half_as_many_steps_drawn_with_replacement_in_their_order():
    store = ring(capacity=40)
    for first in range(0, 80, 10):  # episodes in two parts, which are terminated or truncated
        so_far = float(sum(range(first, first + 4)))
        end = {("terminated", "truncated")[first % 20 > 0]: [0]}
        for part in (parts(4, first=first), parts(2, first=first + 5, earlier=so_far, **end)):
            add(store, part._replace(seed=np.array([first])))
    before, size = all_steps(store), store.size
    store.purge(np.random.default_rng(0))
    found = numbers(store)
    states = store.everything()["observation"][:, 0].astype(int)
    assert store.size == len(store._live) == size // 2 == 15
    starts = states[::2].tolist()
    assert starts == sorted(starts) != sorted(set(starts))
    batch = draw(store)
    np.testing.assert_array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)
    assert all_steps(store).items() <= before.items()
    again = ring(capacity=40)
    again.restore([store.everything()])
    np.testing.assert_array_equal(draw(again).observation, batch.observation)
    again.purge(np.random.default_rng(1))
    assert numbers(again) != found
    (empty := ring(capacity=40)).purge(np.random.default_rng(0))  # resumed without replay
    assert not empty.size
