"""Two free blocks on FetchPush's table, with a goal for each."""

import json

import numpy as np
import pytest

from music_tf.config.names import TWO_BLOCKS
from music_tf.config.settings import EnvConfig
from music_tf.envs.making import make_environment
from music_tf.envs.registry import lookup


def made(**options):
    return make_environment(TWO_BLOCKS, EnvConfig(kwargs=json.dumps(options)))


def by_block(goals):
    return goals.reshape(2, 3)


def test_blocks_and_goals_begin_apart_on_the_table_and_follow_from_the_seed():
    one, other = made(), made()
    for seed in range(20):
        seen, again = (environment.reset(seed=seed)[0] for environment in (one, other))
        for name, values in seen.items():
            np.testing.assert_array_equal(values, again[name])
        assert {name: len(values) for name, values in seen.items()} == {
            "observation": 40,
            "achieved_goal": 6,
            "desired_goal": 6,
        }
        for places in map(by_block, (seen["achieved_goal"], seen["desired_goal"])):
            assert np.linalg.norm(places[0] - places[1]) > 0.1  # a block is 7 cm from edge to edge
            gripper = one.unwrapped.initial_gripper_xpos[:2]
            np.testing.assert_allclose(places[:, :2], [gripper] * 2, atol=0.15)
            np.testing.assert_allclose(places[:, 2], 0.425, atol=1e-3)


def test_the_second_block_is_seen_as_the_first_one():
    environment = made()
    environment.reset(seed=0)
    unwrapped, data = environment.unwrapped, environment.unwrapped.data
    first, second = (data.joint(f"object{block}:joint") for block in (0, 1))
    first.qpos[3:], first.qvel[:] = (0.8, 0.0, 0.0, 0.6), (0.1, -0.2, 0.0, 0.3, 0.0, 0.5)
    second.qpos[:], second.qvel[:] = first.qpos, first.qvel
    second.qpos[0] += 0.2
    unwrapped._mujoco.mj_forward(unwrapped.model, data)
    seen = unwrapped._get_obs()["observation"]
    beside = np.r_[0.2, 0.0, 0.0, 0.2, np.zeros(11)]
    np.testing.assert_allclose(seen[25:], seen[[*range(3, 9), *range(11, 20)]] + beside, atol=1e-9)
    assert np.abs(seen[[33, 34, 39]]).min() > 1e-3


@pytest.mark.parametrize(("moves", "still"), [("first", [1]), ("second", [0]), ("both", [])])
def test_goals_are_of_the_blocks_that_are_to_move(moves, still):
    seen = made(moves=moves).reset(seed=3)[0]
    way = by_block(seen["desired_goal"] - seen["achieved_goal"])
    assert np.flatnonzero(np.linalg.norm(way, axis=1) == 0.0).tolist() == still


def test_a_state_is_at_the_goal_if_both_blocks_are():
    unwrapped = made().unwrapped
    place = np.tile([1.3, 0.7, 0.4], 2)
    away = np.array([[0, 0, 0, 0, 0, 0], [0.04, 0, 0, 0, 0.04, 0], [0.06, 0, 0, 0, 0, 0]])
    away = np.concatenate([away, away[:, [3, 4, 5, 0, 1, 2]]])
    goals = np.tile(place, (6, 1))
    paid = unwrapped.compute_reward(place + away, goals, {})
    np.testing.assert_array_equal(paid, [0, 0, -1, 0, 0, -1])
    assert [unwrapped._is_success(place + each, place) for each in away] == [1, 1, 0, 1, 1, 0]


def test_the_second_block_rests_unless_it_is_pushed():
    for pushed in (False, True):
        environment = made(pushed=pushed)
        places = [environment.reset(seed=1)[0]["achieved_goal"]]
        places += [environment.step(np.zeros(4, np.float32))[0]["achieved_goal"] for _ in range(50)]
        ways = np.linalg.norm(np.diff(np.reshape(places, (51, 2, 3)), axis=0), axis=-1)
        assert ways[:, 0].max() < 1e-4
        # 0.7 m/s against a friction of 1: 0.7^2 / (2 g) = 2.5 cm, most of them in the first step
        assert (2 <= (ways[:, 1] > 0.015).sum() <= 10, ways.max() < 0.027) == (pushed, True)


def test_its_columns_are_known_and_a_wrong_argument_is_not():
    assert lookup(TWO_BLOCKS).split.surrounding == (3, 4, 5, 25, 26, 27)
    with pytest.raises(Exception, match="moves: expected first, second, both, got 'third'"):
        made(moves="third")
