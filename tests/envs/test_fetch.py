import functools

import gymnasium
import numpy as np
import pytest
from gymnasium_robotics.utils import rotations

from music_tf.envs.fetch import FetchMember, HiddenFetchMember, euler, fetch_member
from music_tf.envs.making import GOAL_KEYS, make_environment
from music_tf.envs.member import Row
from tests.kit.cases import cases

STEPS = 50


@pytest.mark.thorough
@cases(
    "env_id",
    "FetchReach-v4",
    "FetchPush-v4",
    "FetchSlide-v4",
    "FetchPickAndPlace-v4",
    "FetchPushDense-v4",
)
def test_all_numbers_equal_those_of_gymnasium_make_to_the_last_bit(env_id):
    random = np.random.default_rng(0)
    plain = gymnasium.make(env_id)
    member = FetchMember(make_environment(env_id))
    row = Row(np.zeros(plain.observation_space["observation"].shape[0]), np.zeros(3), np.zeros(3))
    for episode in range(20 if "Dense" not in env_id else 2):
        goal = np.array([1.3, 0.7, 0.5]) if episode % 2 else None
        expected, _ = plain.reset(seed=episode)
        if goal is not None:
            plain.unwrapped.goal = goal
            expected["desired_goal"] = goal
        member.reset(episode, goal, row)
        for step in range(STEPS + 1):
            for key, values in zip(GOAL_KEYS, row[:3], strict=True):
                np.testing.assert_array_equal(values, expected[key], err_msg=f"{key} {step}")
            if step == STEPS:
                break
            action, seen = random.uniform(-1.0, 1.0, 4).astype(np.float32), expected["observation"]
            if random.random() < 0.5 and len(seen) == 25:  # random actions miss the object
                action[:3] = np.clip(10.0 * seen[6:9], -1.0, 1.0)
            expected, reward, terminated, truncated, info = plain.step(action)
            outcome = member.step(action, row)
            assert outcome == (reward, terminated, truncated, bool(info["is_success"]))


@pytest.mark.parametrize("tilt", [0.3, np.pi / 2, -np.pi / 2])
def test_euler_angles_equal_those_of_gymnasium_robotics_upright_or_not(tilt):
    matrix = rotations.euler2mat(np.array([0.4, tilt, -1.1]))
    np.testing.assert_array_equal(euler(matrix.reshape(9)), rotations.mat2euler(matrix))


def test_an_exactly_degenerate_turn_takes_the_other_formula():
    matrix = np.array([[0.0, 0.0, 1.0], [0.6, 0.8, 0.0], [-0.8, 0.6, 0.0]])
    angles = euler(matrix.reshape(9))
    np.testing.assert_array_equal(angles, rotations.mat2euler(matrix))
    np.testing.assert_allclose(angles, [0.0, np.pi / 2, np.arctan2(0.6, 0.8)], atol=1e-12)


def test_only_fetch_tasks_take_the_fast_path_their_goals_shown_or_hidden():
    words = ("FetchSlideDense-v4", "music_tf/FetchSlideHiddenGoal-v0", "HandReach-v3")
    made = [make_environment(env_id) for env_id in (*words, "music_tf/PointPush-v0")]
    kinds = [FetchMember, HiddenFetchMember, type(None), type(None)]
    assert [type(fetch_member(one)) for one in made] == kinds
    assert not any(fetch_member(gymnasium.wrappers.ClipReward(one, -1.0, 0.0)) for one in made)


def test_a_limit_within_and_methods_of_an_instance_leave_the_fast_path():
    made = make_environment("FetchReach-v4")
    within = gymnasium.wrappers.TimeLimit(made.unwrapped, 10)
    assert fetch_member(gymnasium.wrappers.TimeLimit(within, 50)) is None
    assert fetch_member(made) is not None
    made.unwrapped._sample_goal = lambda: np.array([1.3, 0.7, 0.42])
    assert fetch_member(made) is None


def test_a_method_replaced_in_a_class_leaves_the_fast_path(monkeypatch):
    made = make_environment("FetchPush-v4")
    base = type(made.unwrapped).__mro__[2]
    written = base._get_obs

    @functools.wraps(written)  # has the module and name of the original
    def shifted(self):
        return {name: one + 100.0 for name, one in written(self).items()}

    with monkeypatch.context() as patch:
        patch.setattr(base, "_get_obs", shifted)
        assert fetch_member(made) is None
    assert fetch_member(made) is not None
    monkeypatch.setattr(type(made.unwrapped), "_get_obs", lambda self: {}, raising=False)
    assert fetch_member(made) is None
