"""Hidden goals of gymnasium-robotics: no leak, and the rewards and goals of the environment."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import music_tf.envs  # noqa: F401 - registers them
from music_tf.config.names import EPISODE_STEPS, HIDDEN_GOALS
from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.envs.fetch import HiddenFetchMember
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.envs.member import PlainMember
from music_tf.envs.registry import lookup

REACH, PUSH = "music_tf/FetchReachHiddenGoal-v0", "music_tf/FetchPushHiddenGoal-v0"
MAZE = "music_tf/PointMaze_UMazeHiddenGoal-v0"
SPARSE = World(extras=("sparse_reward",))


def actions_of(envs, steps):
    shape = (steps, 1, envs.spec.action_dim)
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)
    return np.repeat(drawn, len(envs), axis=1)


@pytest.mark.parametrize("env_id", [REACH, PUSH])
def test_what_is_achieved_is_paid_by_its_distance_from_the_task(env_id):
    envs = LockstepEnvs(env_id, 1, world=SPARSE)
    state = envs.reset([0], [3], tasks=np.array([[1.3, 0.7, 0.5]])).observation[0]
    near = state[-3:] + np.float32([0.02, 0.0, 0.03])
    for task in (np.array([1.3, 0.7, 0.9]), near.astype(np.float64)):
        envs.reset([0], [3], tasks=task[None])
        played = envs.step(np.zeros((1, envs.spec.action_dim), np.float32), [0])
        distance = np.linalg.norm(played.observation[0, -3:] - task)
        assert played.reward[0] == pytest.approx(-distance, abs=1e-5)
        solved = distance < 0.05
        assert (played.success[0], played.extras["sparse_reward"][0, 0]) == (solved, solved - 1.0)
    assert solved


def test_observations_are_those_of_the_task_that_shows_its_goal_with_what_is_achieved_behind():
    hidden, shown = LockstepEnvs(PUSH, 1), make_environment("FetchPush-v4")
    seen, _ = shown.reset(seed=5)
    found = hidden.reset([0], [5]).observation
    for action in actions_of(hidden, 5):
        expected = np.concatenate([seen["observation"], seen["achieved_goal"]])
        np.testing.assert_array_equal(found[0], expected.astype(np.float32))
        found = hidden.step(action, [0]).observation
        seen, *_ = shown.step(action[0])
    known = lookup("FetchPush-v4")  # its columns are where they are, and bounds are not known
    assert hidden.info == dataclasses.replace(known, reward_bounds=(-np.inf, np.inf))
    np.testing.assert_array_equal(found[0, list(known.object)], found[0, -3:])


@pytest.mark.parametrize("task", ["Reach", "Push", "PickAndPlace", "Slide"])
def test_the_fast_path_gives_all_numbers_of_a_hidden_goal_to_the_last_bit(task):
    both = [LockstepEnvs(f"music_tf/Fetch{task}HiddenGoal-v0", 1, world=w) for w in (None, SPARSE)]
    fast, plain = both
    assert [type(envs._members[0]) for envs in both] == [HiddenFetchMember, PlainMember]
    for seed, goal in enumerate([None, *fast.sample_tasks(2, np.random.default_rng(1))[:, None]]):
        for envs in both:
            envs.reset([0], [seed], tasks=goal)
        for action in actions_of(fast, 50):
            one, other = (envs.step(action, [0]) for envs in both)
            np.testing.assert_array_equal(fast._table, plain._table[:, :-1])
            assert one[4:] == other[4:]  # reward, ends, success


def drawn(env_id, count=400):
    return gymnasium.make(env_id).get_wrapper_attr("sample_tasks")(count, np.random.default_rng(0))


def test_goals_are_drawn_as_the_environment_draws_them():
    reach, pick = drawn(REACH), drawn("music_tf/FetchPickAndPlaceHiddenGoal-v0")
    away = reach - make_environment("FetchReach-v4").unwrapped.initial_gripper_xpos
    assert 0.14 < np.abs(away).max() <= 0.15
    np.testing.assert_allclose(away.mean(axis=0), 0.0, atol=0.02)
    assert 0.4 < np.isclose(pick[:, 2], pick[:, 2].min()).mean() < 0.6
    cells = np.unique(np.round(drawn(MAZE)), axis=0)
    free = make_environment("PointMaze_UMaze-v3").unwrapped.maze.unique_goal_locations
    np.testing.assert_array_equal(cells, np.unique(free, axis=0))


def test_drawing_tasks_changes_nothing_of_what_the_environment_draws_itself():
    first, second = (gymnasium.make(PUSH) for _ in range(2))
    states = [environment.reset(seed=1)[0] for environment in (first, second)]
    first.get_wrapper_attr("sample_tasks")(3, np.random.default_rng(0))
    states = [environment.reset()[0] for environment in (first, second)]
    np.testing.assert_array_equal(*states)
    np.testing.assert_array_equal(first.unwrapped.goal, second.unwrapped.goal)


@pytest.mark.parametrize("env_id", [MAZE, "music_tf/AntMaze_UMazeHiddenGoal-v0"])
def test_a_goal_in_a_maze_is_where_the_task_says(env_id):
    envs = LockstepEnvs(env_id, 1, world=SPARSE)
    task = envs.sample_tasks(1, np.random.default_rng(4))
    for _ in range(2):
        envs.reset([0], [3], tasks=task)
        played = envs.step(np.zeros((1, envs.spec.action_dim), np.float32), [0])
        distance = np.linalg.norm(played.observation[0, -2:] - task[0])
        assert played.reward[0] == pytest.approx(np.exp(-distance), abs=1e-5)
        solved = distance <= 0.45
        assert (played.success[0], played.extras["sparse_reward"][0, 0]) == (solved, solved)
    unwrapped = envs.environment.unwrapped
    np.testing.assert_allclose(unwrapped.model.site_pos[unwrapped.target_site_id][:2], task[0])


def test_episodes_are_as_long_as_where_the_goal_is_shown_and_rewards_may_be_sparse():
    for hidden, shown in HIDDEN_GOALS.items():
        steps = gymnasium.spec(shown).max_episode_steps
        assert gymnasium.spec(hidden).max_episode_steps == EPISODE_STEPS[hidden] == steps
    envs = LockstepEnvs(PUSH, 1, EnvConfig(kwargs='{"reward_type": "sparse"}'))
    envs.reset([0], [0], tasks=np.array([[1.3, 0.7, 0.9]]))
    assert envs.step(np.zeros((1, 4), np.float32), [0]).reward[0] == -1.0
