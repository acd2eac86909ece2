"""Tasks kept apart: each reward says the task, visit and kind of the episode that it is from."""

import dataclasses

import numpy as np
import pytest

from music_tf.replay.buffer import ReplayBuffer, empty_store
from music_tf.replay.ring import StepRing
from music_tf.replay.tasks import TaskStore, tasks_of
from music_tf.types import EnvSpec
from tests.kit.cases import cases
from tests.kit.drawn import sample_transitions
from tests.kit.episodes import make_episodes
from tests.kit.pearl import small

SPEC = EnvSpec(env_id="tasks", observation_dim=4, goal_dim=0, action_dim=3, max_episode_steps=5)
CONFIG = small()
ROWS = CONFIG.replay.batch_size // 2
"""Of a task of one worker in an update."""


def episodes(task, visit, context, lengths=(5,)):
    """Episodes that pay 100 task + 10 visit, and 1 more where they are context."""
    made = make_episodes(0, len(lengths), list(lengths))
    reward = 100.0 * task + 10.0 * visit + float(context)
    over = np.arange(5) >= np.array(lengths)[:, None]
    count = len(lengths)
    return made._replace(
        achieved_goal=made.achieved_goal[..., :0],
        desired_goal=made.desired_goal[..., :0],
        skill=np.zeros([count, CONFIG.condition_size], np.float32),
        reward=np.where(over, 0.0, reward).astype(np.float32),
        task=np.full(count, task),
        visit=np.full(count, visit),
        context=np.full(count, context),
    )


def store_of(worker=0, config=CONFIG):
    return TaskStore(SPEC, config, worker)


def add(store, *played):
    for one in played:
        store.add(one, np.random.default_rng(0))


def filled(worker=0, config=CONFIG):
    """Two visits to each task of a worker: context, then an episode that is none."""
    store = store_of(worker, config)
    for visit in (1, 2):
        for task in tasks_of(config, worker):
            add(store, episodes(task, visit, True, (3, 1)), episodes(task, visit, False, (2,)))
    return store


def replay_of(shards):
    return ReplayBuffer(shards, CONFIG.replay, None, 0.9, seed=5)


def test_rows_of_an_update_are_of_few_tasks_side_by_side_and_never_mixed():
    replay = replay_of({0: filled(0), 1: filled(1)})
    tags = sample_transitions(replay, 50, 3).reward.astype(int)  # [U, W, B]
    tasks = (tags // 100).reshape(50, 2, 2, ROWS)
    assert (tasks == tasks[..., :1]).all()
    for worker in range(2):
        assert np.unique(tasks[:, worker]).tolist() == [worker, worker + 2, worker + 4]
    assert set(np.unique(tags % 100)) == {10, 11, 20, 21}  # of all visits and kinds


def test_contexts_are_of_the_same_tasks_and_of_their_latest_visit_alone():
    replay = replay_of({0: filled(0), 1: filled(1)})
    rows = sample_transitions(replay, 50, 3).reward.astype(int).reshape(50, 2, 2, ROWS)
    contexts = replay.sample_contexts(50, 40, 3)
    tags = contexts.reward.astype(int)  # [U, W, m, N]
    assert tags.shape == (50, 2, 2, 40)
    np.testing.assert_array_equal(tags[..., 0] // 100, rows[..., 0] // 100)
    assert (tags % 100 == 21).all()
    np.testing.assert_equal(contexts.next_observation[..., 0], contexts.observation[..., 0] + 1.0)
    # steps count alike: three of four are of the longer of two episodes
    assert np.mean(contexts.observation[..., 0] >= 100.0) == pytest.approx(0.25, abs=0.02)


def test_a_visit_clears_the_context_and_keeps_the_rows():
    store = filled()
    before = store.size
    add(store, episodes(2, 3, True))
    assert store.size == before + 5
    tags = store.context(np.full([20, 2], 1), 10, np.random.default_rng(0)).reward
    assert set(np.unique(tags).astype(int)) == {231}  # of task 2, the second of this worker
    others = store.context(np.full([20, 2], 0), 10, np.random.default_rng(0)).reward
    assert set(np.unique(others).astype(int)) == {21}


def test_tasks_share_the_capacity_evenly_and_a_purge_keeps_half_of_each_visited():
    store = store_of()
    for task, count in ((0, 4), (2, 8)):
        add(store, episodes(task, 1, True, (5,) * count))
    store.purge(np.random.default_rng(0))
    assert store.size == 5 * (2 + 4)
    replay = dataclasses.replace(CONFIG.replay, capacity=3 * 12)
    store = store_of(0, dataclasses.replace(CONFIG, replay=replay))
    for visit in range(6):
        add(store, episodes(0, visit, True))  # six cells each
    add(store, episodes(2, 0, True))
    assert store.size == 10 + 5


def test_trajectories_of_all_tasks_come_whole():
    store = TaskStore(SPEC, CONFIG, 0, columns=[0, 1])
    for task in tasks_of(CONFIG, 0):
        add(store, episodes(task, 1, True, (3, 1)))
    slots, lengths = store.pick_trajectories((6, 8), np.random.default_rng(0))
    assert set(np.unique(lengths)) == {1, 3}
    out = np.empty([6, 8, store.longest + 1, 2], np.float32)
    store.trajectories(slots, out)
    first = out[..., 0, 0]
    np.testing.assert_array_equal(np.where(first >= 100.0, 1, 3), lengths)
    np.testing.assert_array_equal(out[..., -1, 0], first + lengths)  # the last state repeats


@pytest.mark.parametrize("way", ["piece by piece", "at once"])
def test_what_was_saved_comes_back_with_its_tasks_and_visits(way):
    store, saved = store_of(), []
    for visit in (1, 2):
        for task in tasks_of(CONFIG, 0)[: 1 + visit]:
            add(store, episodes(task, visit, True, (3, 1)), episodes(task, visit, False, (2,)))
        saved.append(store.unsaved())
        store.mark_saved()
    assert store.unsaved() == {}
    if way == "at once":
        saved = [store.everything()]
    other = store_of()
    other.check_rows(saved)
    other.restore(saved)
    draws = [
        one.look_up(one.pick((9, CONFIG.replay.batch_size), np.random.default_rng(4))).reward
        for one in (store, other)
    ]
    np.testing.assert_array_equal(*draws)
    tasks = np.random.default_rng(1).integers(3, size=(9, 2))
    contexts = [one.context(tasks, 10, np.random.default_rng(2)).state for one in (store, other)]
    np.testing.assert_array_equal(*contexts)
    expected = store.full_rows()
    for rows in saved:
        assert set(rows) == set(expected)
        for name, values in rows.items():
            assert values.dtype == expected[name].dtype, name
            assert values.shape[1:] == expected[name].shape[1:], name


@cases(
    ("change", "text"),
    ({"task": np.array([1])}, "a task of another worker"),
    ({"task": np.array([0, 2])}, "not as many tasks as episodes"),
    ({"length": np.array([9])}, "length lies outside an episode"),
    ({"visit": np.array([1, 1])}, "not as many rows as episodes"),
    ({"parts": np.array([7, 0, 0])}, "1 of 7 episodes are there"),
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_restored(change, text):
    store = store_of()
    add(store, episodes(0, 1, True))
    rows = store.unsaved() | change
    with pytest.raises(ValueError, match=text):
        store.check_rows([rows])


def test_an_agent_that_infers_its_task_gets_such_a_store_and_others_have_no_contexts():
    assert isinstance(empty_store(CONFIG, SPEC, worker=1), TaskStore)
    ring = StepRing(SPEC, 1, CONFIG.replay)
    with pytest.raises(ValueError, match="expected replay that keeps tasks apart"):
        replay_of({0: ring}).sample_contexts(1, 1, 0)


def test_a_run_of_steps_begins_with_an_episode_and_goes_on_as_it_happened():
    store = store_of(0, small(agent__encoder="gru"))
    add(store, episodes(0, 1, True, (5, 5)))
    add(store, episodes(0, 2, True, (2, 3, 4)), episodes(0, 2, False, (5,)))
    ring, generator = store._rings[0], np.random.default_rng(0)
    picks = ring.pick_context(300, 6, generator)
    runs = np.stack([picks.slot, picks.time], axis=-1).reshape(50, 6, 2).tolist()
    visit = [[2, 0], [2, 1], [3, 0], [3, 1], [3, 2], [4, 0], [4, 1], [4, 2], [4, 3]]
    # nine steps of three episodes: six begin with the first or the second alone
    assert {str(run) for run in runs} == {str(visit[:6]), str(visit[2:8])}
    (again,) = (
        np.stack(ring.pick_context(11, 11, generator)[:2], axis=-1).reshape(1, 11, 2).tolist()
    )
    assert again == visit + visit[:2]  # too few steps
    found = store.context(np.array([[0, 0], [0, 0]]), 6, generator)
    assert found.reward.shape == (2, 2, 6)
    assert (found.reward == 21.0).all()
