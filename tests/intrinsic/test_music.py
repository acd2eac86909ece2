"""MUSIC on made-up walks of a gripper that may carry an object."""

import math

import numpy as np
import pytest
import tensorflow as tf

from music_tf.config.settings import ReplayConfig
from music_tf.intrinsic.music import Music
from music_tf.losses.mutual_information import donsker_varadhan
from music_tf.recipes.music import MusicConfig
from music_tf.replay.buffer import ReplayBuffer, Shard, all_transitions
from music_tf.types import EnvSpec, SplitSpec
from tests.kit import terms
from tests.kit.cases import cases
from tests.kit.episodes import make_episodes, rng

STEPS = 50
SPLIT = SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5))
SPEC = EnvSpec(env_id="held", observation_dim=25, goal_dim=3, action_dim=4, max_episode_steps=STEPS)
STEP_LENGTH = 0.03
CENTRE = np.array([1.3, 0.75, 0.45])
COINS = {"swapped": tf.constant([True, False])}


def carried_episodes(count, share, generator, length=STEPS):
    """The gripper walks at random; a share of the objects is carried from mid-episode on."""
    moves = generator.normal(0.0, STEP_LENGTH, (count, STEPS, 3))
    start = CENTRE + generator.normal(0.0, 0.05, (count, 2, 3))
    gripper = np.concatenate([start[:, :1], start[:, :1] + np.cumsum(moves, axis=1)], axis=1)
    carried = (generator.random(count) < share)[:, None, None]
    held = carried & (np.arange(STEPS) >= STEPS // 2)[:, None]
    follows = np.cumsum(np.where(held, moves, 0.0), axis=1)
    block = np.concatenate([start[:, 1:], start[:, 1:] + follows], axis=1)
    rest = generator.normal(size=(count, STEPS + 1, SPEC.observation_dim - 6))
    observation = np.concatenate([gripper, block, rest], axis=-1).astype(np.float32)
    return make_episodes(0, count)._replace(
        observation=observation,
        achieved_goal=observation[..., 3:6],
        desired_goal=np.zeros([count, 3], np.float32),
        action=np.zeros([count, STEPS, 4], np.float32),
        reward=np.zeros([count, STEPS], np.float32),
        length=np.full(count, length),
    )


def replay_of(*shares, count=60, length=STEPS):
    """A replay buffer with a worker for each share of carried objects."""
    config = ReplayConfig(capacity=count * STEPS)
    shards = {}
    for worker, share in enumerate(shares):
        shard = Shard(SPEC, 1, config, (*SPLIT.agent, *SPLIT.surrounding))
        generator = np.random.default_rng(worker)
        shard.add(carried_episodes(count, share, generator, length), generator)
        shards[worker] = shard
    return ReplayBuffer(shards, config, lambda achieved, desired: np.zeros(len(achieved)), 0.98, 0)


def music(scale=None, seed=0, **config):
    settings = MusicConfig(
        trajectories=32, gain=5000.0, normalize_inputs=scale is not None, **config
    )
    return Music(settings, terms.context(SPLIT, scale=scale, seed=seed))


def observations(workers=2, rows=30, seed=0):
    """Two states [W, B, 25] between which gripper and object both move."""
    generator = rng(seed)
    before = generator.normal(size=(workers, rows, 25))
    before[..., :6] = np.tile(CENTRE, 2) + generator.normal(0.0, 0.1, (workers, rows, 6))
    after = before + generator.normal(0.0, 0.03, before.shape)
    return before.astype(np.float32), after.astype(np.float32)


def keras_scores(term, weights, agent, surrounding):
    rows = [np.reshape(values, (-1, 3)) for values in (agent, surrounding)]
    return tf.reshape(term.networks[0](weights["statistics"], *rows), agent.shape[:-1])


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("shape", [(7, 3), (2, 5, 3), (2, 3, 4, 3)])
def test_scores_are_those_of_the_keras_model(shape, activation):
    term = music(activation=activation)
    for seed in (None, 1):
        weights = terms.weights_of(term, seed)
        agent, surrounding = (tf.constant(rng(n).normal(size=shape), tf.float32) for n in (0, 1))
        found = term._score(weights["statistics"], agent, surrounding)
        expected = keras_scores(term, weights, agent, surrounding)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert np.std(found) > 0.01


@pytest.mark.parametrize("negatives", ["random", "swap", "all_pairs"])
def test_the_reward_is_the_bound_on_the_two_states_of_a_transition(negatives):
    term = music(pair_negatives=negatives)
    weights = terms.weights_of(term, 3)
    states = observations()
    score = {
        (i, j): keras_scores(term, weights, x[..., :3], y[..., 3:6]).numpy().astype(np.float64)
        for i, x in enumerate(states)
        for j, y in enumerate(states)
    }
    joint = 0.5 * (score[0, 0] + score[1, 1])
    same = 0.5 * (np.exp(score[0, 0]) + np.exp(score[1, 1]))
    crossed = 0.5 * (np.exp(score[0, 1]) + np.exp(score[1, 0]))
    marginal = np.stack([crossed[0], same[1]])  # worker 0 is swapped, worker 1 is not
    if negatives == "all_pairs":
        marginal = 0.5 * (same + crossed)
    found = term.reward(weights, terms.transitions(*states), COINS)
    np.testing.assert_allclose(found, joint - np.log(marginal), atol=1e-6)


@pytest.mark.parametrize("still", [slice(0, 3), slice(3, 6)], ids=["gripper", "object"])
@pytest.mark.parametrize("negatives", ["swap", "all_pairs"])
def test_a_still_object_or_gripper_pays_nothing(still, negatives):
    term = music(pair_negatives=negatives)
    before, after = observations()
    after[..., still] = before[..., still]
    for seed in range(5):
        reward = term.reward(terms.weights_of(term, seed), terms.transitions(before, after), COINS)
        assert np.max(reward) <= 1e-6


def test_only_positions_of_gripper_and_object_matter_and_no_gradient_passes_the_reward():
    term = music()
    weights = terms.weights_of(term)
    before, after = observations()
    expected = term.reward(weights, terms.transitions(before, after), COINS)
    for states in (before, after):
        states[..., 6:] += rng(5).normal(size=states[..., 6:].shape)
    found = term.reward(weights, terms.transitions(before, after), COINS)
    np.testing.assert_array_equal(found, expected)
    for component in range(6):
        moved = after.copy()
        moved[..., component] += 0.01
        found = term.reward(weights, terms.transitions(before, moved), COINS)
        assert np.mean(found != expected) > 0.5
    assert terms.gradient_of_reward(music(), terms.transitions(*observations()), COINS) is None


def test_about_half_of_the_batches_pay_nothing_since_they_share_a_coin():
    term, replay = music(train=False), replay_of(0.5, 0.5, count=2)
    swapped = term.feed(replay, 1000, 0)["swapped"]
    assert swapped.shape == (1000, 2)
    assert abs(swapped.mean() - 0.5) < 0.056  # five deviations of 2000 coins
    agree = np.mean(swapped[:, 0] == swapped[:, 1])
    assert abs(agree - 0.5) < 0.08  # workers toss their own
    assert (term.feed(replay, 1000, 1)["swapped"] != swapped).any()
    swapping = music(train=False, pair_negatives="swap")
    assert swapping.feed(replay, 100, 0)["swapped"].all()
    weights, states = terms.weights_of(term, 3), terms.transitions(*observations())
    most = {
        coin: np.max(term.reward(weights, states, {"swapped": tf.fill([2], coin)}), axis=1)
        for coin in (True, False)
    }
    assert (most[True] > 1e-4).all()
    assert (most[False] <= 1e-6).all()


def test_the_bound_is_that_of_whole_trajectories_with_the_object_shuffled_in_time():
    term, replay = music(), replay_of(0.5, 0.0)
    feed, weights = terms.first_update(term.feed(replay, 3, 0)), terms.weights_of(term, 1)
    agent, surrounding = np.split(feed["trajectories"], 2, axis=-1)
    assert agent.shape == (2, 32, STEPS + 1, 3)
    shuffled = surrounding.copy()
    for worker, (order,) in enumerate(feed["order"].numpy()):
        assert sorted(order) == list(range(STEPS + 1))
        for trajectory in range(32):
            shuffled[worker, trajectory] = surrounding[worker, trajectory][order]
    assert (shuffled != surrounding).any()
    expected = donsker_varadhan(
        keras_scores(term, weights, agent, surrounding),
        keras_scores(term, weights, agent, shuffled),
        tf.ones([2, 32, STEPS + 1]),
    )
    loss, metrics = term.loss(weights, feed)
    np.testing.assert_allclose(metrics["music/bound"], np.mean(expected, axis=1), atol=1e-6)
    np.testing.assert_allclose(loss, -np.mean(expected, axis=1), atol=1e-6)


@pytest.mark.parametrize("negatives", ["shared", "independent"])
def test_one_permutation_serves_a_batch_or_each_trajectory_has_its_own(negatives):
    term = music(trajectory_negatives=negatives)
    lengths = np.full([4, 32], STEPS)
    short, order = (term._permutations(0, 0, lengths, STEPS + 1, some) for some in (False, True))
    assert short.shape == (4, 1 if negatives == "shared" else 32, STEPS + 1)
    np.testing.assert_array_equal(order, np.broadcast_to(short, order.shape))
    assert order.shape == (4, 32, STEPS + 1)
    assert (np.sort(order, axis=-1) == np.arange(STEPS + 1)).all()
    assert (order == order[:, :1]).all() == (negatives == "shared")
    assert (order[0] != order[1]).any()
    for worker, cycle in ((1, 0), (0, 1)):
        assert (term._permutations(worker, cycle, lengths, STEPS + 1, True) != order).any()


def test_one_permutation_for_all_shuffles_as_the_same_for_each_does():
    term, whole, short = music(), replay_of(0.5, 0.0), replay_of(1.0, 1.0, length=9)
    feeds = [term.feed(replay, 2, 0) for replay in (whole, short, whole)]
    assert [feed["order"].shape[2] for feed in feeds] == [1, 32, 32]  # and stays as it is
    one, each = (
        term.loss(terms.weights_of(term, 1), terms.first_update(feed))[0] for feed in feeds[::2]
    )
    np.testing.assert_array_equal(one, each)


@pytest.mark.parametrize("negatives", ["shared", "independent"])
def test_shorter_trajectories_are_permuted_among_their_valid_states(negatives):
    term = music(trajectory_negatives=negatives)
    lengths = rng().integers(1, 9, size=(50, 6))
    order = term._permutations(0, 0, lengths, 9, True)
    for permutation, length in zip(order.reshape(-1, 9), lengths.ravel(), strict=True):
        valid = length + 1
        assert sorted(permutation[:valid]) == list(range(valid))
        assert permutation[valid:].tolist() == list(range(valid, 9))


def test_a_restricted_permutation_is_uniform():
    term = music(trajectory_negatives="independent")
    order = term._permutations(0, 0, np.full([1, 12_000], 2), 6, True)[0, :, :3]
    names, counts = np.unique(order @ [100, 10, 1], return_counts=True)
    assert names.tolist() == [12, 21, 102, 120, 201, 210]
    # the 0.9999 quantile of chi-square with 5 degrees of freedom is 25.7
    assert np.sum((counts - 2000) ** 2) / 2000 < 25.7


def test_padding_changes_neither_bound_nor_gradient():
    term, results = music(), []
    for padding in (0.0, 7.0, -300.0):
        replay = replay_of(1.0, length=20)
        replay.shards[0].tracks[:, 21:] = padding
        feed = terms.first_update(term.feed(replay, 1, 0))
        assert (feed["lengths"].numpy() == 20).all()
        loss, _ = term.loss(terms.weights_of(term), feed)
        results.append(np.append(terms.gradient_of_loss(term, feed), loss))
    np.testing.assert_allclose(results, results[:1] * 3, atol=1e-7)


@pytest.fixture(scope="module")
def trained():  # weights and bounds of 400 updates on walks that carry the object from half time on
    weights, losses = terms.train(music(), replay_of(1.0, count=1000), 400)
    return weights, -losses


def paid(weights, moves, other):
    """Mean clipped reward of swapped pairs; `other` is the object's way for the gripper's."""
    start = carried_episodes(100, 1.0, rng(7)).observation[:, ::10].reshape(1, -1, 25)
    after = start.copy()
    after[..., :3] += moves
    after[..., 3:6] += other
    term = music(pair_negatives="swap")
    reward = term.reward(weights, terms.transitions(start, after), {"swapped": tf.constant([True])})
    return float(np.mean(np.clip(5000.0 * reward, 0.0, 1.0)))


@pytest.mark.thorough
def test_carried_objects_raise_the_bound_and_those_that_never_move_are_worth_nothing(trained):
    _, bounds = trained
    assert np.mean(bounds[:5]) < 0.005
    assert np.mean(bounds[-50:]) > 0.02
    _, losses = terms.train(music(), replay_of(0.0), 60)
    assert losses.min() >= -1e-6


def test_moving_together_pays_most_and_apart_or_not_at_all_the_least(trained):
    weights, _ = trained
    moves, own = rng(8).normal(0.0, STEP_LENGTH, (2, 1, 600, 3))
    together, alone, apart, still = (
        paid(weights, moves, other) for other in (moves, own, -moves, 0.0 * moves)
    )
    assert together > 0.6
    assert together > alone + 0.2
    assert alone > apart + 0.2
    assert apart < 0.1
    assert still < 1e-3


def test_a_frozen_network_samples_nothing_and_has_no_loss():
    term = music(train=False)
    assert set(term.feed(replay_of(0.5, count=2), 3, 0)) == {"swapped"}
    loss, metrics = term.loss(terms.weights_of(term), {})
    assert (float(loss), metrics) == (0.0, {})
    assert term.networks[0].learning_rate == 0.0
    assert music(learning_rate=0.1).networks[0].learning_rate == 0.1


def test_the_gain_is_that_of_the_task_unless_another_is_set():
    gains = (None, 5000.0), (7.0, 7.0), ("auto", 1.0)  # a measured one is 1 at first
    for gain, expected in gains:
        made = Music(MusicConfig(gain=gain), terms.context(SPLIT, music_gain=5000.0))
        assert made.gain == expected
    assert set(made.feed(replay_of(0.5, count=2), 1, 0)) >= {"gain", "swapped"}


def test_normalised_inputs_are_centred_and_x_y_z_divided_by_one_root_of_their_mean():
    centre, unit = np.arange(6, dtype=np.float32), np.float32([1, 2, 4, 8, 16, 32])
    scaled, plain = music(scale=(centre, unit)), music()
    weights = terms.weights_of(plain, 1)
    raw = rng().normal(size=(5, 6)).astype(np.float32)
    inputs = (raw - centre) / unit
    found = scaled._score(weights["statistics"], raw[:, :3], raw[:, 3:])
    expected = plain._score(weights["statistics"], inputs[:, :3], inputs[:, 3:])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    split = SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5, 9))
    scale = (np.arange(7, dtype=np.float32), np.float32([3, 0.5, 0.5, 0.1, 0.1, 0.01, 7]))
    told = terms.context(split, scale=scale, gripper=(0, 1, 2), object=(3, 4, 5))
    found = Music(MusicConfig(normalize_inputs=True), told).scales["statistics"].numpy()
    np.testing.assert_array_equal(found[0], np.arange(7))
    # sqrt(9.5 / 3), and sqrt((0.01 + 0.01 + 0.0001) / 3); what is no position is by itself
    np.testing.assert_allclose(found[1], [1.7795130] * 3 + [0.0818535] * 3 + [7], rtol=1e-6)


def test_within_a_flat_piece_a_step_of_both_is_paid_by_tanh_and_not_by_relu():
    """The unit sees 0.6 before, 1 after, 0.8 when mixed, all of it to the right of its kink."""
    kernel = np.float32([[1], [0], [0]])
    weights = {
        "statistics": [
            tf.constant(values, tf.float32)
            for values in (kernel, [0.5], kernel, [0.5], [[-0.01]], [0])
        ]
    }
    states = np.zeros((2, 1, 1, 25), np.float32)
    states[0, ..., [0, 3]], states[1, ..., [0, 3]] = -0.2, 0.0
    paid = {
        activation: music(pair_negatives="swap", activation=activation)
        .reward(weights, terms.transitions(*states), {"swapped": tf.constant([True])})
        .numpy()
        .item()
        for activation in ("relu", "tanh")
    }
    assert abs(paid["relu"]) < 1e-7
    # -0.01 (tanh 0.6 + tanh 1 - 2 tanh 0.8) / 2
    assert paid["tanh"] == pytest.approx(1.4715e-4, rel=1e-2)


def test_the_heldout_bound_is_a_bound_on_episodes_given(trained):
    weights, bounds = trained
    term = music()
    episodes = carried_episodes(400, 1.0, rng(99))

    def bound(episodes):
        return term.heldout(weights, episodes)["music/bound_heldout"]

    found = bound(episodes)
    assert found == pytest.approx(np.mean(bounds[-50:]), abs=0.02)
    assert found == bound(episodes)
    assert bound(carried_episodes(400, 0.0, rng(99))) <= 1e-6
    # padding of shorter episodes does not count
    short = episodes._replace(length=np.full(400, 20))
    changed = episodes.observation.copy()
    changed[:, 21:] = 55.0
    assert bound(short._replace(observation=changed)) == pytest.approx(bound(short), abs=1e-7)


def test_the_heldout_pay_is_the_mean_of_steps_before_an_end_with_swapped_negatives():
    term = music(pay="log", clip=(-4.0, 4.0), shift=0.0)
    weights = terms.weights_of(term)
    episodes = carried_episodes(6, 1.0, rng(99))._replace(length=np.array([3, 50, 50, 50, 40, 1]))
    steps = tf.nest.map_structure(tf.convert_to_tensor, all_transitions(episodes))
    raw = term.reward(weights, steps, {"swapped": tf.fill([6], True)})
    paid = term.mixing(raw, tf.constant(1.0)).numpy()
    own = [row[:length] for row, length in zip(paid, episodes.length, strict=True)]
    found = term.heldout(weights, episodes)["music/paid_heldout"]
    assert found == pytest.approx(np.concatenate(own).mean(), rel=1e-6)
    low, high = term.mixing.range
    assert low < found < high


@cases(
    ("paid", "full"),
    ({}, 1.0 / 5000),
    ({"pay": "log", "clip": (0.0, 2.0)}, (math.e**2 - 1.0) / 5000),
)
def test_the_priority_of_an_episode_is_the_sum_of_bounds_up_to_what_is_paid_in_full(paid, full):
    term = music(pair_negatives="swap", **paid)
    weights = terms.weights_of(term, 3)
    episodes, bounds = carried_episodes(6, 0.5, rng(5)), []
    for t in range(STEPS):
        states = (episodes.observation[None, :, t], episodes.observation[None, :, t + 1])
        steps = terms.transitions(*states)
        bounds.append(term.reward(weights, steps, {"swapped": tf.constant([True])})[0])
    expected = np.clip(np.array(bounds), 0.0, full).sum(axis=0)
    found = term.priorities(weights, episodes, 0, 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert 0.0 < found.max() <= STEPS * full * (1.0 + 1e-5)
    assert found.min() >= 0.0


def test_steps_after_the_end_of_an_episode_do_not_count():
    term = music(pair_negatives="swap")
    weights = terms.weights_of(term, 3)
    whole = carried_episodes(4, 1.0, rng(5))
    found = term.priorities(weights, whole._replace(length=np.array([0, 20, 30, STEPS])), 0, 0)
    assert found[0] == 0.0
    assert found[3] == term.priorities(weights, whole, 0, 0)[3]
    assert (found[:3] < term.priorities(weights, whole, 0, 0)[:3]).all()


@pytest.mark.thorough
def test_each_step_has_a_coin_that_the_episodes_of_a_worker_share():
    term, swapping = music(pair_negatives="random"), music(pair_negatives="swap")
    weights = terms.weights_of(term, 3)
    episodes = carried_episodes(3, 1.0, rng(5))
    whole = swapping.priorities(weights, episodes, 0, 0)
    # an identity permutation pays nothing but rounding, so half of the steps are left on average
    mean = np.mean([term.priorities(weights, episodes, 0, cycle) for cycle in range(400)], axis=0)
    np.testing.assert_allclose(mean, 0.5 * whole, rtol=0.1, atol=5e-7)
    twice = [term.priorities(weights, episodes, 0, 7) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    assert (twice[0] != term.priorities(weights, episodes, 1, 7)).any()
    alike = episodes._replace(observation=np.repeat(episodes.observation[:1], 3, axis=0))
    assert len(set(term.priorities(weights, alike, 0, 7).tolist())) == 1
