import gymnasium
import numpy as np
import pytest

from music_tf.envs.point_robot import PointRobot
from music_tf.envs.registry import lookup
from music_tf.envs.toys import PointPush, Square
from tests.kit.cases import cases


def place(environment, point, disc, goal=(0.9, 0.9, 0.0)):
    environment.reset(seed=0)
    environment._point, environment._object = list(point), list(disc)
    environment.goal = np.array(goal)


@cases(
    ("point", "disc", "action", "after"),
    ((0.0, 0.0), (0.2, 0.0), (1.0, 0.0, -1.0), (0.25, 0.0, 0.0)),
    ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0, 1.0), (0.5, 0.0, 0.0)),
    ((0.0, 0.0), (0.12, 0.0), (-1.0, 0.5, 1.0), (0.02, 0.05, 0.0)),
    ((0.8, 0.0), (0.95, 0.0), (1.0, 0.0, -1.0), (1.05, 0.0, -0.5)),
    ((0.95, 0.0), (1.05, 0.0), (-1.0, 0.0, 1.0), (1.05, 0.0, -0.5)),
    ids=["pushed until it touches", "out of reach", "held, even backwards", "over", "fallen"],
)
def test_a_disc_goes_where_point_and_grip_take_it(point, disc, action, after):
    environment = PointPush()
    place(environment, point, disc)
    observation = environment.step(np.float32(action))[0]
    np.testing.assert_allclose(observation["achieved_goal"], after, atol=1e-7)
    place_of_point = np.add(point, 0.1 * np.array(action[:2]))
    expected = [*place_of_point, 0.0, *after, *np.subtract(after[:2], place_of_point)]
    np.testing.assert_allclose(observation["observation"], expected, atol=1e-7)


def test_reward_is_zero_within_a_tenth_where_an_episode_ends_only_if_asked_to():
    rewards = PointPush().compute_reward(
        np.zeros((3, 3)), np.array([[0.09, 0, 0], [0.08, 0.08, 0], [0, 0, 0.5]]), {}
    )
    np.testing.assert_array_equal(rewards, [0.0, -1.0, -1.0])
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
    assert environment.spec.max_episode_steps == 30
    again, _ = environment.reset(seed=3)
    np.testing.assert_array_equal(observation["observation"], again["observation"])
    other, _ = environment.reset(seed=4)
    assert not np.array_equal(observation["observation"], other["observation"])


def test_image_shows_point_above_disc_above_goal():
    environment = PointPush()
    place(environment, (0.0, 0.0), (0.0, 0.0), goal=(1.0, 0.0, 0.0))
    image = environment.render()
    assert image.shape == (96, 96, 3)
    assert (tuple(image[48, 48]), tuple(image[48, 80])) == ((220, 60, 60), (80, 200, 80))
    colours = {tuple(colour) for colour in PointRobot().render().reshape(-1, 3)}
    assert colours == {(255, 255, 255), (80, 200, 80), (220, 60, 60)}


def test_the_box_starts_in_the_middle_keeps_its_walls_and_pays_ten_times_the_way_along_x():
    environment = gymnasium.make("music_tf/UnitBox-v0", render_mode="rgb_array")
    assert environment.spec.max_episode_steps == 50
    for seed in (1, 2):
        observation, _ = environment.reset(seed=seed)
        np.testing.assert_array_equal(observation, [0.5, 0.5])
    for action, place, paid in (
        ((1.0, -0.5), (0.6, 0.45), 1.0),
        ((-0.3, 0.0), (0.57, 0.45), -0.3),
        ((9.0, 0.0), (0.67, 0.45), 1.0),
    ):
        observation, reward, terminated, truncated, _ = environment.step(np.float32(action))
        np.testing.assert_allclose(observation, place, atol=1e-6)
        assert reward == pytest.approx(paid, abs=1e-6)
        assert not terminated
        assert not truncated
    total = sum(environment.step(np.float32([1.0, 1.0]))[1] for _ in range(20))
    assert total == pytest.approx(3.3, abs=1e-6)  # what is left to the wall
    np.testing.assert_allclose(environment.unwrapped._point, [1.0, 0.95 + 0.05])
    image = environment.render()
    assert (tuple(image[0, 95]), tuple(image[95, 0])) == ((220, 60, 60), (255, 255, 255))
    assert lookup("music_tf/UnitBox-v0").descriptor == (0, 1)


def walked(environment, action, steps):
    observation, _ = environment.reset(seed=0)
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = environment.step(np.float32(action))
        assert (reward, terminated) == (0.0, False)
    return observation, truncated


def test_ten_full_steps_reach_the_edge_of_the_square_and_end_the_episode():
    environment = gymnasium.make("music_tf/Square-v0")
    for action, place in (((1.0, -1.0), (10.0, -10.0)), ((-9.0, 0.25), (-10.0, 2.5))):
        observation, truncated = walked(environment, action, 9)
        np.testing.assert_array_equal(observation, np.multiply(place, 0.9))
        assert not truncated
        observation, truncated = walked(environment, action, 10)
        np.testing.assert_array_equal(observation, place)
        assert truncated
    observation, _ = walked(environment.unwrapped, (1.0, -1.0), 12)
    np.testing.assert_array_equal(observation, [10.0, -10.0])
    assert lookup("music_tf/Square-v0").descriptor == (0, 1)


def test_a_wall_keeps_the_point_of_the_square_from_its_right_half_until_it_is_opened():
    environment = Square(wall=True)
    np.testing.assert_array_equal(walked(environment, (1.0, -1.0), 5)[0], [0.0, -5.0])
    np.testing.assert_array_equal(walked(environment, (-1.0, 0.5), 4)[0], [-4.0, 2.0])
    closed = environment.render()
    assert environment.changeable == ("wall",)
    environment.wall = False
    np.testing.assert_array_equal(walked(environment, (1.0, -1.0), 5)[0], [5.0, -5.0])
    image = environment.render()
    assert (tuple(image[71, 71]), tuple(closed[10, 90])) == ((220, 60, 60), (160, 160, 160))
    assert tuple(closed[10, 10]) == tuple(image[10, 90]) == (255, 255, 255)
