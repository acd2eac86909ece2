"""Surroundings that move by themselves, as a toy and on MuJoCo."""

import json

import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.making import make_environment
from music_tf.envs.registry import lookup

CROWD, CONVEYOR = "music_tf/PointPushCrowd-v0", "music_tf/FetchPushConveyor-v0"
WORLDS = pytest.mark.parametrize("env_id", [CROWD, CONVEYOR])
SECOND = {CROWD: [8, 9], CONVEYOR: [26]}
"""Columns of what moves by itself."""


def played(environment, seed, actions):  # observations [T + 1, O] of an episode
    first = environment.reset(seed=seed)[0]["observation"]
    return np.array([first, *(environment.step(one)[0]["observation"] for one in actions)])


def resting(environment, steps=20):
    return np.zeros([steps, *environment.action_space.shape], np.float32)


@WORLDS
def test_the_second_object_moves_while_nothing_is_done_and_the_first_does_not(env_id):
    environment = make_environment(env_id)
    seen = played(environment, 3, resting(environment))
    assert seen.shape == (21, {CROWD: 12, CONVEYOR: 29}[env_id])
    moved = np.linalg.norm(np.diff(seen[:, SECOND[env_id]], axis=0), axis=1)
    assert (moved.max() > 0.02, moved.max() < 0.25) == (True, True)
    assert (moved > 1e-3).mean() > 0.8  # it turns round now and then
    info = lookup(env_id)
    assert {*SECOND[env_id], 3, 4, 5} < set(info.split.surrounding)
    assert info.music_gain is None  # so that it is auto
    first = list(info.object)
    assert np.abs(seen[:, first] - seen[0, first]).max() < 1e-3
    # it comes back: nothing is lost, and a trend of the episode shows none of its ways
    assert np.abs(seen[:, SECOND[env_id]] - seen[0, SECOND[env_id]]).max() < 0.7


@WORLDS
def test_an_episode_follows_from_its_seed_whatever_was_played_before(env_id):
    one, other = make_environment(env_id), make_environment(env_id)
    actions = np.random.default_rng(0).uniform(-1, 1, [20, *one.action_space.shape])
    actions = actions.astype(np.float32)
    played(other, 8, actions[:7])
    seen = played(one, 5, actions)
    np.testing.assert_array_equal(seen, played(other, 5, actions))
    np.testing.assert_array_equal(seen, played(one, 5, actions))
    assert (played(one, 6, actions)[0, SECOND[env_id]] != seen[0, SECOND[env_id]]).all()


def test_the_first_disc_is_that_of_the_toy_and_the_second_goes_round_in_ten_steps():
    crowd, plain = (gymnasium.make(f"music_tf/{n}-v0") for n in ("PointPushCrowd", "PointPush"))
    actions = np.random.default_rng(1).uniform(-1, 1, [20, 3]).astype(np.float32)
    np.testing.assert_array_equal(played(crowd, 4, actions)[:, :8], played(plain, 4, actions))
    environment = make_environment(CROWD)
    seen = played(environment, 3, resting(environment, 10))
    np.testing.assert_allclose(seen[10, 8:10], seen[0, 8:10], atol=1e-9)
    middle = seen[:10, 8:10].mean(axis=0)
    np.testing.assert_allclose(np.linalg.norm(seen[:, 8:10] - middle, axis=1), 0.3)
    raw = make_environment(CROWD, EnvConfig(kwargs=json.dumps({"unit": 1000})))
    np.testing.assert_allclose(
        played(raw, 3, resting(raw, 10))[:, 8:10], 1000 * seen[:, 8:10], rtol=1e-12
    )


def test_the_conveyor_follows_its_way_and_pushes_what_it_meets():
    environment = make_environment(CONVEYOR)
    seen = played(environment, 3, resting(environment, 30))
    np.testing.assert_allclose(seen[15, 25:28], seen[0, 25:28], atol=2e-3)  # a way of 15 steps
    np.testing.assert_allclose(np.ptp(seen[:, 26]), 0.2, atol=5e-3)
    np.testing.assert_allclose(seen[:, [25, 27]], [[1.533, 0.427]] * 31, atol=1e-6)
    # put in its way, a block is taken along
    unwrapped = environment.unwrapped
    environment.reset(seed=3)
    spot = unwrapped.data.joint("object0:joint").qpos
    middle = unwrapped._middle + 0.75
    spot[:2] = 1.52, middle
    before = spot[1]
    for action in resting(environment, 15):
        environment.step(action)
    assert abs(spot[1] - before) > 0.02


@WORLDS
def test_what_can_be_moved_may_begin_beside_the_robot(env_id):
    near = make_environment(env_id, EnvConfig(kwargs=json.dumps({"near": True})))
    away = {CROWD: 0.2, CONVEYOR: 0.06}[env_id]
    begun = np.array([played(near, seed, [])[0] for seed in range(5)])
    ways = begun[:, 3:5] - begun[:, 0:2]
    np.testing.assert_allclose(np.linalg.norm(ways, axis=1), away, atol=2e-3)
    assert np.ptp(np.arctan2(*ways.T)) > 1.0  # to any side
    seen = played(near, 0, resting(near))
    assert np.abs(seen[:, 3:6] - seen[0, 3:6]).max() < 1e-3  # and is not touched there
    far = np.array([played(make_environment(env_id), seed, [])[0] for seed in range(5)])
    np.testing.assert_array_equal(begun[:, SECOND[env_id]], far[:, SECOND[env_id]])


def test_the_conveyor_may_shake_as_nothing_can_follow():
    environment = make_environment(CONVEYOR, EnvConfig(kwargs=json.dumps({"shakes": True})))
    place = played(environment, 3, resting(environment, 45))[1:, 26]
    assert 0.04 < np.ptp(place) <= 0.061
    # uniform and anew in each step: +-0.03 m deviate by 0.0173, and no step says what comes next
    assert abs(place.std() - 0.0173) < 0.004
    assert abs(np.corrcoef(place[1:], place[:-1])[0, 1]) < 0.35
