import gymnasium
import numpy as np
import pytest

from music_tf.envs.toys import EPISODE_STEPS, PointPush, PointReach


def place(environment, point, disc, goal=(0.9, 0.9, 0.0)):
    environment.reset(seed=0)
    environment._point, environment._object = list(point), list(disc)
    environment.goal = np.array(goal)


def test_point_moves_a_tenth_for_an_action_of_one():
    environment = PointReach()
    place(environment, (0.0, 0.5), (0.0, 0.0))
    observation = environment.step(np.array([1.0, -0.5], np.float32))[0]
    np.testing.assert_allclose(observation["observation"], [0.1, 0.45, 0.0])


def test_disc_is_pushed_until_it_just_touches():
    environment = PointPush()
    place(environment, (0.0, 0.0), (0.2, 0.0))
    observation = environment.step(np.array([1.0, 0.0, -1.0], np.float32))[0]
    # The point comes to 0.1, so the disc is moved to 0.1 + 0.15.
    np.testing.assert_allclose(observation["achieved_goal"], [0.25, 0.0, 0.0])
    np.testing.assert_allclose(observation["observation"][6:8], [0.15, 0.0])


def test_disc_out_of_reach_stays():
    environment = PointPush()
    place(environment, (0.0, 0.0), (0.5, 0.0))
    observation = environment.step(np.array([1.0, 0.0, 1.0], np.float32))[0]
    np.testing.assert_array_equal(observation["achieved_goal"], [0.5, 0.0, 0.0])


def test_disc_that_is_held_moves_along_even_backwards():
    environment = PointPush()
    place(environment, (0.0, 0.0), (0.12, 0.0))
    observation = environment.step(np.array([-1.0, 0.5, 1.0], np.float32))[0]
    np.testing.assert_allclose(observation["achieved_goal"], [0.02, 0.05, 0.0])


def test_disc_over_the_edge_falls_and_cannot_be_fetched_back():
    environment = PointPush()
    place(environment, (0.8, 0.0), (0.95, 0.0))
    fallen = environment.step(np.array([1.0, 0.0, -1.0], np.float32))[0]["achieved_goal"]
    np.testing.assert_allclose(fallen, [1.05, 0.0, -0.5])
    environment._point = [0.95, 0.0]
    after = environment.step(np.array([-1.0, 0.0, 1.0], np.float32))[0]["achieved_goal"]
    np.testing.assert_array_equal(after, fallen)


def test_reward_is_zero_within_a_tenth_and_takes_many_goals():
    rewards = PointPush().compute_reward(
        np.zeros((3, 3)), np.array([[0.09, 0, 0], [0.08, 0.08, 0], [0, 0, 0.5]]), {}
    )
    np.testing.assert_array_equal(rewards, [0.0, -1.0, -1.0])


def test_episode_ends_at_the_goal_only_where_asked_to():
    for terminating in (False, True):
        environment = PointPush(terminate_when_reached=terminating)
        place(environment, (0.0, 0.0), (0.5, 0.0), goal=(0.5, 0.05, 0.0))
        _, reward, terminated, _, info = environment.step(np.zeros(3, np.float32))
        assert (reward, terminated, info["is_success"]) == (0.0, terminating, True)


@pytest.mark.parametrize("name", ["PointReach", "PointPush", "PointPushTerminating"])
def test_toys_are_registered_and_keep_gymnasiums_contract(name):
    environment = gymnasium.make(f"music_tf/{name}-v0")
    observation, _ = environment.reset(seed=3)
    assert environment.observation_space.contains(observation)
    assert environment.spec.max_episode_steps == EPISODE_STEPS
    again, _ = environment.reset(seed=3)
    np.testing.assert_array_equal(observation["observation"], again["observation"])
    other, _ = environment.reset(seed=4)
    assert not np.array_equal(observation["observation"], other["observation"])


def test_image_shows_point_above_disc_above_goal():
    environment = PointPush()
    place(environment, (0.0, 0.0), (0.0, 0.0), goal=(1.0, 0.0, 0.0))
    image = environment.render()
    assert image.shape == (96, 96, 3)
    assert tuple(image[48, 48]) == (220, 60, 60)
    assert tuple(image[48, 80]) == (80, 200, 80)
