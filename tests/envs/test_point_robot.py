import math

import gymnasium
import numpy as np
import pytest

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.point_robot import PointRobot
from music_tf.errors import EnvironmentFault, UsageError
from tests.kit.cases import cases


def played(robot, seed=3, steps=4):  # states, rewards and infos under one held action
    states, paid, infos = [robot.reset(seed=seed)[0]], [], []
    for _ in range(steps):
        state, reward, terminated, truncated, info = robot.step(np.float32([1.0, -0.5]))
        assert not terminated
        assert not truncated
        states.append(state)
        paid.append(reward)
        infos.append(info)
    return np.array(states), paid, infos


def test_the_reward_is_minus_the_distance_to_a_place_that_is_not_observed():
    robot = PointRobot()
    seen = {}
    for place in ([0.5, 0.5], [-1.0, 0.0]):
        robot.set_task(np.array(place))
        states, paid, _ = played(robot)
        np.testing.assert_allclose(paid, [-math.dist(state, place) for state in states[1:]])
        np.testing.assert_allclose(np.diff(states, axis=0), [[0.1, -0.05]] * 4)
        seen[tuple(place)] = states
    np.testing.assert_array_equal(*seen.values())


def test_the_sparse_reward_pays_near_the_place_alone():
    robot = PointRobot(layout="half_circle")
    robot.set_task(np.array([0.45, -0.2]))
    states, _, infos = played(robot, steps=6)
    assert states[0].tolist() == [0.0, 0.0]
    for state, info in zip(states[1:], infos, strict=True):
        distance = math.dist(state, [0.45, -0.2])
        expected = 1.0 - distance if distance <= 0.2 else 0.0
        assert info["sparse_reward"] == pytest.approx(expected)
        assert info["is_success"] == (distance <= 0.2)
    assert {info["is_success"] for info in infos} == {False, True}


def test_places_fill_the_square_or_stand_evenly_on_the_half_circle():
    square = PointRobot().sample_tasks(400, np.random.default_rng(0))
    assert np.abs(square).max() <= 1.0
    np.testing.assert_allclose(square.mean(axis=0), 0.0, atol=0.1)
    circle = PointRobot(layout="half_circle", radius=2.0).sample_tasks(5, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 2.0)
    angles = np.sort(np.arctan2(circle[:, 1], circle[:, 0]))
    np.testing.assert_allclose(angles, np.pi * np.arange(5) / 4, atol=1e-12)
    with pytest.raises(ValueError, match="layout: expected square or half_circle, got 'ring'"):
        PointRobot(layout="ring")


def rewards(envs, indices, tasks, seed=5):
    envs.reset(indices, [seed] * len(indices), tasks=tasks)
    return envs.step(np.zeros([len(indices), 2], np.float32), indices).reward


def test_each_environment_of_a_batch_is_the_task_that_its_reset_asks_for():
    envs = LockstepEnvs("music_tf/PointRobot-v0", 2)
    tasks = envs.sample_tasks(2, np.random.default_rng(0))
    both = rewards(envs, [0, 1], tasks)
    assert both[0] != both[1]
    np.testing.assert_array_equal(rewards(envs, [1, 0], tasks), both)
    # without a task each keeps the one that it has
    np.testing.assert_array_equal(rewards(envs, [0, 1], None), both[::-1])


class OddTasks(PointRobot):  # a family whose tasks are whatever a test wants
    tasks = None

    def sample_tasks(self, count, generator):
        return self.tasks

    def set_task(self, task):
        if task[0] > 5.0:
            raise KeyError("too far")


@cases(
    ("tasks", "text"),
    ([1.0, 2.0], r"must give \[2, D\] numbers for 2 tasks, got \[2\]"),
    ([[1.0]], r"must give \[2, D\] numbers for 2 tasks, got \[1, 1\]"),
    ([[1.0], [np.nan]], "for 2 tasks, got one that is not finite"),
)
def test_tasks_that_are_no_vectors_of_finite_numbers_are_refused(monkeypatch, tasks, text):
    monkeypatch.setattr(OddTasks, "tasks", tasks)
    spec = gymnasium.envs.registration.EnvSpec("Odd-v0", OddTasks, max_episode_steps=3)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    envs = LockstepEnvs("Odd-v0", 1)
    with pytest.raises(UsageError, match=text):
        envs.sample_tasks(2, np.random.default_rng(0))
    with pytest.raises(EnvironmentFault, match="KeyError: 'too far'"):
        envs.reset([0], [0], tasks=np.array([[9.0, 0.0]]))
