import dataclasses

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.config.world import DISCOUNT
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.replay.buffer import ReplayBuffer, Shard, all_transitions
from music_tf.replay.rows import transition
from music_tf.replay.watch import RewardWatch
from tests.kit.cases import cases
from tests.kit.drawn import sample_trajectories, sample_transitions
from tests.kit.episodes import SPEC, STEPS, goal_reward, make_episodes, numbers_in, places, rng

GAMMA = 0.9
K4 = {"relabel_k": 4.0}


def shard_of(episodes, columns=(), **config):
    return Shard(SPEC, 1, ReplayConfig(capacity=episodes * STEPS, **config), columns)


def buffer_of(*shards, **config):
    config = ReplayConfig(**{"batch_size": 64, **config})
    return ReplayBuffer(dict(enumerate(shards)), config, goal_reward, GAMMA, seed=1)


def filled(count=6, config=None, **changes):
    shard = shard_of(count, **(config or {}))
    shard.add(make_episodes(0, count, **changes), rng())
    return shard


def test_without_a_task_or_for_what_learns_from_states_alone_no_reward_is_asked_for():
    replay = buffer_of(filled())
    replay.watch = RewardWatch(goal_reward)
    picks = replay.pick(2, 0)
    unpaid = replay.transitions(picks, paid=False)
    assert replay.watch.take().steps == 0
    paid = replay.transitions(picks)
    assert replay.watch.take().steps > 0
    assert paid.reward.any()
    alone = ReplayBuffer({0: filled()}, ReplayConfig(batch_size=64), None, GAMMA, seed=1)
    for without in (unpaid, sample_transitions(alone, 2, 0)):
        assert not without.reward.any()
        for name in set(paid._fields) - {"reward"}:
            np.testing.assert_array_equal(getattr(without, name), getattr(paid, name))


@pytest.mark.parametrize(("transitions", "episodes"), [(5 * STEPS - 1, 4), (1, 1)])
def test_capacity_counts_transitions_and_holds_at_least_one_episode(transitions, episodes):
    assert Shard(SPEC, 1, ReplayConfig(capacity=transitions)).capacity == episodes


def test_an_insert_that_straddles_the_end_overwrites_what_was_there_before_it():
    for seed in range(20):
        shard = shard_of(4)
        shard.add(make_episodes(0, 3), rng())
        slots = shard.add(make_episodes(3, 3), rng(seed))
        assert slots[0] == 3
        assert set(slots[1:].tolist()) <= {0, 1, 2}
        assert (shard.size, numbers_in(shard)[3]) == (4, 3)


def test_a_full_store_overwrites_uniformly_at_random_and_never_grows():
    shard = shard_of(4)
    shard.add(make_episodes(0, 4), rng())
    slots = np.concatenate(
        [shard.add(make_episodes(number, 2), rng(number)) for number in range(4, 1004, 2)]
    )
    assert shard.size == 4
    counts = np.bincount(slots, minlength=4)
    assert counts.sum() == 1000
    assert (abs(counts - 250) < 70).all()  # five standard deviations, sqrt(1000 * 3/16) = 13.7


def test_the_oldest_give_way_in_a_ring():
    shard = shard_of(4, overwrite="oldest")
    for number in range(7):
        shard.add(make_episodes(number), rng())
    assert numbers_in(shard) == [4, 5, 6, 3]
    assert shard.add(make_episodes(7, 3), rng()).tolist() == [3, 0, 1]
    assert numbers_in(shard) == [8, 9, 6, 7]
    straddling = shard_of(4, overwrite="oldest")
    straddling.add(make_episodes(0, 3), rng())
    assert straddling.add(make_episodes(3, 3), rng()).tolist() == [3, 0, 1]
    assert numbers_in(straddling) == [4, 5, 2, 3]
    straddling.restore([])  # as a run does that goes back to its start
    assert straddling.add(make_episodes(6, 6), rng()).tolist() == [0, 1, 2, 3, 0, 1]


def test_what_is_stored_or_saved_does_not_follow_its_source():
    shard, episodes = shard_of(2, columns=[0]), make_episodes(1)
    kept = {name: np.copy(getattr(episodes, name)) for name in shard.arrays}
    shard.add(episodes, rng())
    for name, array in kept.items():
        source = getattr(episodes, name)
        source[...] = 1 if source.dtype == np.bool_ else 77
        np.testing.assert_array_equal(shard.arrays[name][:1], array)
    np.testing.assert_array_equal(shard.tracks[0, :, 0], kept["observation"][0, :, 0])
    shard = filled(2)
    rows = shard.rows(np.array([0]))
    shard.add(make_episodes(8, 2), rng())
    np.testing.assert_array_equal(rows["desired_goal"], [[0.0, 0.0]])


@cases(("overwrite", "priority"), ("random", "uniform"), ("oldest", "uniform"), ("random", "music"))
def test_a_restored_store_goes_on_bit_equal(overwrite, priority):
    config = {"overwrite": overwrite, "batch_size": 32, "relabel_k": 4.0, "priority": priority}
    one, other = (
        buffer_of(*(shard_of(5, columns=[1, 3], **config) for _ in range(2)), **config)
        for _ in range(2)
    )

    def add(buffer, cycle):
        numbers = {worker: 2 * cycle + 50 * worker for worker in (0, 1)}
        priorities = {worker: rng(number).random(2) for worker, number in numbers.items()}
        episodes = {worker: make_episodes(number, 2) for worker, number in numbers.items()}
        buffer.add(episodes, cycle, priorities if priority == "music" else None)

    saved = {0: [], 1: []}
    for cycle in range(6):
        add(one, cycle)
        if cycle in (0, 3, 5):
            for worker, rows in one.unsaved().items():
                saved[worker].append({name: np.copy(array) for name, array in rows.items()})
            one.mark_saved()
    for worker, rows in saved.items():
        other.shards[worker].restore(rows)
    for buffer in (one, other):
        add(buffer, 6)
    for worker in (0, 1):
        np.testing.assert_equal(other.shards[worker].arrays, one.shards[worker].arrays)
    np.testing.assert_equal(sample_transitions(one, 3, 6), sample_transitions(other, 3, 6))
    np.testing.assert_equal(sample_trajectories(one, 3, 4, 6), sample_trajectories(other, 3, 4, 6))


def saved_rows(number=0, **changes):
    """What two saves of 2 and 3 episodes wrote, one of them changed."""
    shard, saved = shard_of(6), []
    for first, count in ((0, 2), (2, 3)):
        saved.append(shard.rows(shard.add(make_episodes(first, count), rng())))
    saved[number] |= {name: np.asarray(value) for name, value in changes.items()}
    return saved


def test_rows_that_a_run_saved_fit_and_look_like_those_of_a_full_shard():
    shard, saved = shard_of(6), saved_rows()
    shard.check_rows(saved)
    shard.check_rows([])
    full = shard.full_rows()
    assert set(full) == set(saved[0])
    for name, array in saved[0].items():
        assert (full[name].dtype, full[name].shape[1:]) == (array.dtype, array.shape[1:])
    assert len(full["slots"]) == 6


@cases(
    ("saved", "says"),
    (saved_rows(0, slots=[0, 6]), "outside its capacity"),
    (saved_rows(0, size=7), "outside its capacity"),
    (saved_rows(0, cursor=-1), "outside its capacity"),
    (saved_rows(1, length=[1, 0, 5]), "length lies outside"),
    (saved_rows(1, slots=[2, 3]), "not as many rows as slots"),
    (saved_rows()[1:], "3 of 5 episodes are there"),
)
def test_rows_that_lie_elsewhere_are_refused(saved, says):
    with pytest.raises(ValueError, match=says):
        shard_of(6).check_rows(saved)


def test_only_what_is_new_is_unsaved():
    buffer = buffer_of(shard_of(4))
    assert buffer.unsaved() == {0: {}}
    buffer.add({0: make_episodes(0, 2)}, 0)
    assert buffer.unsaved()[0]["slots"].tolist() == [0, 1]
    buffer.add({0: make_episodes(2, 1)}, 1)
    assert buffer.unsaved()[0]["slots"].tolist() == [0, 1, 2]
    buffer.mark_saved()
    buffer.add({0: make_episodes(3, 1)}, 2)
    assert buffer.unsaved()[0]["slots"].tolist() == [3]


def test_transitions_fit_together_and_k_of_zero_or_none_changes_no_goal():
    batch = sample_transitions(buffer_of(filled(config={"relabel_k": 0.0})), 3, 0)
    assert batch.observation.shape == (3, 1, 64, 4)
    number, time = places(batch)
    state = 100.0 * number + time
    np.testing.assert_allclose(batch.observation[..., 0], state, rtol=1e-6)
    np.testing.assert_allclose(batch.next_observation[..., 0], state + 1, rtol=1e-6)
    np.testing.assert_allclose(batch.action[..., 0], state + 0.5, rtol=1e-6)
    for config in ({"relabel_k": 0.0}, {"relabel_k": 4.0, "strategy": "none"}):
        batch = sample_transitions(buffer_of(filled(config=config)), 3, 0)
        np.testing.assert_array_equal(batch.desired_goal[..., 0], -places(batch)[0])
        assert (batch.reward == -1.0).all()


def test_every_new_goal_was_achieved_later_in_the_same_episode_and_is_paid_where_it_is_reached():
    batch = sample_transitions(buffer_of(filled(config=K4), batch_size=5000), 2, 0)
    goal, (number, time) = batch.desired_goal[..., 0], places(batch)
    relabelled = goal != -number
    assert relabelled.mean() == pytest.approx(0.8, abs=0.02)
    state = np.round(goal - 100.0 * number)[relabelled]
    assert (state > time[relabelled]).all()
    assert (state <= STEPS).all()
    last = time[relabelled] == STEPS - 1
    assert last.any()
    assert (state[last] == STEPS).all()
    reached = np.round(goal - 100.0 * number) == time + 1
    np.testing.assert_array_equal(batch.reward, np.where(reached, 0.0, -1.0))
    assert 0.2 < reached.mean() < 0.6  # 0.8 * (1 + 1/2 + 1/3 + 1/4 + 1/5) / 5 = 0.365


def test_final_goals_are_those_of_the_last_valid_state():
    shard = filled(4, {"relabel_k": 1e6, "strategy": "final"}, lengths=[5, 3, 1, 2])
    batch = sample_transitions(buffer_of(shard), 3, 0)
    number, _ = places(batch)
    length = shard.arrays["length"][number]
    np.testing.assert_allclose(batch.desired_goal[..., 0], 100.0 * number + length, rtol=1e-6)


def test_padding_is_never_sampled():
    shard = filled(4, K4, lengths=[5, 3, 1, 2])
    for name in ("observation", "achieved_goal", "action"):
        values = shard.arrays[name]
        for episode, length in enumerate((5, 3, 1, 2)):
            values[episode, length + (name != "action") :] = np.nan
    batch = sample_transitions(buffer_of(shard, batch_size=2000), 2, 0)
    for name in ("observation", "next_observation", "desired_goal", "action"):
        assert np.isfinite(getattr(batch, name)).all()
    number, time = places(batch)
    assert (time < shard.arrays["length"][number]).all()
    assert set(time[number == 1]) == {0, 1, 2}


def test_only_the_filled_part_is_sampled():
    shard = shard_of(100)
    shard.add(make_episodes(0, 2), rng())
    buffer = buffer_of(shard)
    assert set(np.ravel(places(sample_transitions(buffer, 4, 0))[0])) == {0, 1}
    columns, lengths = sample_trajectories(buffer, 2, 50, 0)
    assert columns.shape == (2, 1, 50, STEPS + 1, 0)
    assert (lengths == STEPS).all()


@pytest.mark.parametrize("why", ["terminated", "lost"])
def test_the_discount_is_zero_where_the_task_ends_or_the_object_is_lost(why):
    shard = filled(4, lengths=[5, 3, 3, 5], **{why: [False, True, False, True]})
    batch = sample_transitions(buffer_of(shard, batch_size=1000), 1, 0)
    number, time = places(batch)
    last = time == shard.arrays["length"][number] - 1
    ended = last & np.isin(number, [1, 3])
    np.testing.assert_array_equal(batch.discount, np.where(ended, 0.0, np.float32(GAMMA)))
    np.testing.assert_array_equal(batch.lost, ended & (why == "lost"))
    assert ended.any()
    assert (last & ~ended).any()  # a time limit ends nothing


def test_batches_depend_on_worker_and_cycle_and_not_on_the_other_workers():
    shards = [filled(), shard_of(6)]
    shards[1].add(make_episodes(50, 6), rng())
    together = buffer_of(*shards)
    alone = ReplayBuffer({1: shards[1]}, ReplayConfig(batch_size=64), goal_reward, GAMMA, seed=1)
    batch, own = sample_transitions(together, 3, 4), sample_transitions(alone, 3, 4)
    np.testing.assert_equal(batch.observation[:, 1], own.observation[:, 0])
    number, _ = places(batch)
    assert (number[:, 0] < 6).all()
    assert (number[:, 1] >= 50).all()
    assert (number[:, 0] != number[:, 1] - 50).any()
    assert (number[0] != number[1]).any()
    assert (number != places(sample_transitions(together, 3, 5))[0]).any()


def test_trajectories_are_the_kept_columns_of_whole_episodes():
    shard = shard_of(3, columns=[3, 0])
    shard.add(make_episodes(0, 3, lengths=[5, 2, 4]), rng())
    columns, lengths = sample_trajectories(buffer_of(shard), 2, 40, 0)
    assert columns.shape == (2, 1, 40, STEPS + 1, 2)
    number = np.round(columns[..., 0, 1] / 100).astype(int)
    assert set(np.ravel(number)) == {0, 1, 2}
    np.testing.assert_array_equal(lengths, np.array([5, 2, 4])[number])
    np.testing.assert_array_equal(columns, shard.arrays["observation"][number][..., [3, 0]])
    chosen, again = sample_trajectories(buffer_of(shard), 2, 40, 0, [0, 3, 0])
    np.testing.assert_array_equal(chosen, columns[..., [1, 0, 1]])
    np.testing.assert_array_equal(again, lengths)


def test_fresh_transitions_are_as_many_as_steps_and_come_from_the_fresh_episodes():
    buffer = buffer_of(filled(config=K4))
    observations, goals = buffer.sample_fresh({0: make_episodes(20, 3)}, cycle=2)
    assert observations.shape == (1, 3 * STEPS, 4)
    assert (observations >= 2000).all()
    assert (goals > 0).any()  # relabelled
    assert (goals < 0).any()


def test_all_transitions_are_the_steps_of_episodes_in_their_places():
    # Episode e has 100 e + t + i / 10 in component i of state t; the second one ends after 2.
    episodes = make_episodes(7, 2, lengths=[STEPS, 2], lost=[False, True], skills=3)
    steps = all_transitions(episodes)
    np.testing.assert_allclose(steps.observation[0, :, 0], 700.0 + np.arange(STEPS))
    np.testing.assert_allclose(steps.next_observation[0, :, 1], 701.1 + np.arange(STEPS))
    np.testing.assert_allclose(steps.next_observation[1, :, 0], [801, 802, 802, 802, 802])
    np.testing.assert_allclose(steps.observation[1, :, 0], [800, 801, 802, 802, 802])
    np.testing.assert_array_equal(steps.desired_goal[1], np.full((STEPS, 2), -8.0))
    np.testing.assert_array_equal(steps.skill.argmax(axis=-1), [[1] * STEPS, [2] * STEPS])
    np.testing.assert_array_equal(steps.lost[1], [False, True, False, False, False])
    assert not steps.lost[0].any()
    np.testing.assert_array_equal(steps.episode_return, [[-7.0 * STEPS] * STEPS, [-14.0] * STEPS])
    assert steps.reward is episodes.reward
    assert steps.action is episodes.action


def test_every_step_knows_its_skill_and_what_its_whole_episode_returned():
    shard, again = (Shard(SPEC, 3, ReplayConfig(capacity=3 * STEPS)) for _ in range(2))
    shard.add(make_episodes(0, 3, lengths=[5, 2, 4], skills=3), rng())
    batch = sample_transitions(buffer_of(shard), 2, 0)
    paid, (number, _) = np.array([-35.0, -14.0, -28.0]), places(batch)  # 7 less a step
    np.testing.assert_array_equal(batch.episode_return, paid[number])
    np.testing.assert_array_equal(batch.skill.argmax(axis=-1), number)
    again.restore([shard.rows(np.arange(3))])
    np.testing.assert_equal(sample_transitions(buffer_of(again), 2, 0), batch)


def test_a_discount_that_comes_with_a_step_multiplies_the_run_s():
    spec = dataclasses.replace(SPEC, extras={DISCOUNT: 1})
    shard = Shard(spec, 1, ReplayConfig(capacity=2 * STEPS))
    halved = {DISCOUNT: lambda o: np.where(o[..., :1] % 100 == 3, 0.5, 1.0)}  # into state 3
    shard.add(make_episodes(0, 2, lengths=[5, 4], terminated=[False, True], **halved), rng())
    batch = sample_transitions(buffer_of(shard), 2, 0)
    number, time = places(batch)
    expected = np.where(time == 2, 0.5, 1.0) * np.where((number == 1) & (time == 3), 0.0, GAMMA)
    np.testing.assert_allclose(batch.discount, expected, rtol=1e-6)


@pytest.mark.parametrize(("music", "megabytes"), [(False, 135), (True, 159)])
def test_a_million_transitions_of_fetch_push_cost_what_the_page_says(music, megabytes):
    # 51 states of 25 + 3 numbers and 50 steps of 4 + 1, the goal, skill, length and flags of an
    # episode: 6739 bytes; six numbers a state kept by themselves: 1224 more
    envs = LockstepEnvs("FetchPush-v4", 1)
    spec = envs.spec
    envs.close()
    columns = [*spec.split.agent, *spec.split.surrounding] if music else []
    shard = Shard(spec, 1, ReplayConfig(capacity=1000 * spec.max_episode_steps), columns)
    kept = [*shard.arrays.values(), shard.tracks]
    per_episode = sum(array.nbytes for array in kept) / shard.capacity
    assert per_episode == 6739 + (1224 if music else 0)
    assert round(per_episode / spec.max_episode_steps) == megabytes  # bytes each, so MB a million


def test_an_episode_that_neither_the_task_nor_a_loss_ended_was_cut_by_the_time():
    shard = Shard(SPEC, 1, ReplayConfig())
    ends = {"terminated": [True, False, False], "lost": [False, True, False]}
    episodes = make_episodes(0, 3, lengths=[3, 2, 4], **ends)
    shard.add(episodes, rng())
    drawn = transition(shard.look_up(shard.pick((500,), rng())), 0.9, None)
    episode, time = places(drawn)
    np.testing.assert_array_equal(drawn.truncated, (episode == 2) & (time == 3))
    assert np.argwhere(all_transitions(episodes).truncated).tolist() == [[2, 3]]


def test_a_purge_keeps_a_random_half_of_each_worker_and_the_next_save_writes_all():
    replay = buffer_of(filled(8), filled(6))
    replay.mark_saved()
    assert not replay.shrunk
    replay.purge(3)
    assert [shard.size for shard in replay.shards.values()] == [4, 3]
    assert replay.shrunk
    again = shard_of(8)
    again.restore([replay.everything()[0]])
    assert numbers_in(again) == numbers_in(replay.shards[0])
    other = buffer_of(filled(8), filled(6))
    other.purge(4)
    assert numbers_in(other.shards[0]) != numbers_in(replay.shards[0])
    replay.forget()
    assert [shard.size for shard in replay.shards.values()] == [0, 0]
    assert replay.shards[0].add(make_episodes(5, 4), rng()).tolist() == [0, 1, 2, 3]
