"""Families of MuJoCo robots: what they pay, what a task changes, and that bodies come back."""

import gymnasium
import numpy as np
import pytest

import music_tf.envs  # noqa: F401 - registers them
from music_tf.config.names import ROBOT_FAMILIES
from music_tf.config.settings import EnvConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.errors import UsageError
from tests.envs.test_changes import arrays_of, different
from tests.kit.cases import cases

BODIES = ("music_tf/Walker2dBodies-v0", "music_tf/HopperBodies-v0")
PLACES = ("music_tf/FetchReachHiddenGoal-v0", "music_tf/PointRobot-v0")
"""Families that pay for a place."""


def made(name, **options):
    return gymnasium.make(f"music_tf/{name}-v0", **options)


def centre_of_mass(environment):
    unwrapped = environment.unwrapped
    mass = unwrapped.model.body_mass
    return mass @ unwrapped.data.xipos[:, :2] / mass.sum()


def torso(environment):
    return environment.unwrapped.data.body(1).xpos[:2].copy()


def steps_of(environment, task, place, steps=12, seed=4):
    """Yields velocity of a place in the plane, action, reward and the environment's end."""
    environment.get_wrapper_attr("set_task")(np.array(task))
    environment.reset(seed=seed)
    space, seconds = environment.action_space, environment.unwrapped.dt
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        action = generator.uniform(space.low, space.high).astype(np.float32)
        before = place(environment)
        _, reward, terminated, _, _ = environment.step(action)
        yield (place(environment) - before) / seconds, action, reward, terminated
        if terminated:
            return


def planar(environment):
    return environment.unwrapped.data.qpos[:2].copy()


def contact(environment):
    return np.square(np.clip(environment.unwrapped.data.cfrc_ext, -1.0, 1.0)).sum()


def test_a_cheetah_is_paid_for_a_speed_or_a_direction_less_its_effort():
    for speed in (0.0, 1.3):
        for velocity, action, reward, _ in steps_of(made("HalfCheetahVelocity"), [speed], planar):
            expected = -abs(velocity[0] - speed) - 0.05 * np.square(action).sum()
            assert reward == pytest.approx(expected, abs=1e-6)
    for sign in (1.0, -1.0):
        for velocity, action, reward, _ in steps_of(made("HalfCheetahDirection"), [sign], planar):
            expected = sign * velocity[0] - 0.05 * np.square(action).sum()
            assert reward == pytest.approx(expected, abs=1e-6)
    alone = made("HalfCheetahDirection", sign=-1)  # which learns one direction
    alone.reset(seed=1)
    *_, info = alone.step(np.full(6, 0.5, np.float32))
    assert info["reward_task"] == -info["x_velocity"]


@cases(
    ("name", "kwargs", "text"),
    ("HalfCheetahVelocity", '{"fastest": -1}', "fastest: expected a speed above 0 m/s, got -1"),
    ("HalfCheetahDirection", '{"sign": 0}', "sign: expected 1 or -1, got 0"),
    *(
        ("HalfCheetah", f'{{"broken_joint": {joint}}}', "broken_joint: .* from 0 to 5, or null")
        for joint in (6, -1, '"hip"')
    ),
)
def test_a_robot_refuses_what_makes_no_task(name, kwargs, text):
    with pytest.raises(UsageError, match=f"^env.kwargs: {text}"):
        LockstepEnvs(f"music_tf/{name}-v0", 1, EnvConfig(kwargs=kwargs))


def test_an_ant_is_paid_for_its_speed_in_a_direction_or_its_distance_from_a_place():
    environment = made("AntDirection")
    for velocity, action, reward, _ in steps_of(environment, [0.6, -0.8], torso):
        walked = 0.6 * velocity[0] - 0.8 * velocity[1]
        costs = 0.5 * np.square(action).sum() + 5e-4 * contact(environment)
        assert reward == pytest.approx(walked + 1.0 - costs, abs=1e-6)
    environment = made("AntHiddenGoal")
    for _, action, reward, terminated in steps_of(environment, [1.0, -2.0], torso):
        x, y = environment.unwrapped.data.qpos[:2]
        costs = 0.1 * np.square(action).sum() + 5e-4 * contact(environment)
        assert reward == pytest.approx(-abs(x - 1.0) - abs(y + 2.0) - costs, abs=1e-6)
        assert not terminated
    state = environment.unwrapped._get_obs()
    np.testing.assert_array_equal(state[:2], environment.unwrapped.data.qpos[:2])


def test_a_humanoid_is_paid_a_quarter_of_its_way_over_the_time_step():
    environment = made("HumanoidDirection")
    unwrapped = environment.unwrapped
    for velocity, _, reward, _ in steps_of(environment, [0.0, 1.0], centre_of_mass):
        way = velocity * unwrapped.dt
        walked = 0.25 * way[1] / unwrapped.model.opt.timestep
        effort = 0.1 * np.square(unwrapped.data.ctrl).sum()
        hit = min(5e-7 * np.square(unwrapped.data.cfrc_ext).sum(), 10.0)
        assert reward == pytest.approx(walked + 5.0 - effort - hit, abs=1e-6)


@pytest.mark.parametrize("env_id", BODIES)
def test_other_bodies_are_paid_for_their_speed_and_for_the_step_in_which_they_fall(env_id):
    environment = gymnasium.make(env_id)
    task = np.zeros_like(environment.get_wrapper_attr("sample_tasks")(1, np.random.default_rng(0)))
    found = list(steps_of(environment, task[0], planar, steps=200))
    for velocity, action, reward, _ in found:
        assert reward == pytest.approx(velocity[0] + 1.0 - 1e-3 * np.square(action).sum(), abs=1e-6)
    assert [terminated for *_, terminated in found] == [False] * (len(found) - 1) + [True]


def test_what_robots_observe_is_that_of_their_fifth_version():
    sizes = {env_id: make_environment(env_id).observation_space.shape for env_id in ROBOT_FAMILIES}
    assert list(sizes.values()) == [(17,), (17,), (105,), (107,), (348,), (17,), (11,)]
    assert {gymnasium.spec(env_id).max_episode_steps for env_id in ROBOT_FAMILIES} == {200}


def tasks_of(name, count=2000, **options):
    return made(name, **options).get_wrapper_attr("sample_tasks")(count, np.random.default_rng(1))


def test_tasks_are_drawn_as_the_authors_draw_them():
    speeds = tasks_of("HalfCheetahVelocity")
    assert (speeds.min() >= 0.0, speeds.max() <= 3.0) == (True, True)
    assert speeds.mean() == pytest.approx(1.5, abs=0.05)
    assert tasks_of("HalfCheetahVelocity", fastest=2.0).max() <= 2.0
    assert tasks_of("HalfCheetahDirection", 4).tolist() == [[1.0], [-1.0], [1.0], [-1.0]]
    for name in ("AntDirection", "HumanoidDirection"):
        directions = tasks_of(name)
        np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
        np.testing.assert_allclose(directions.mean(axis=0), 0.0, atol=0.05)
        assert tasks_of(name, 3, forward_backward=True).tolist() == [[1, 0], [-1, 0], [1, 0]]
    radii = np.linalg.norm(tasks_of("AntHiddenGoal"), axis=1)
    assert radii.max() <= 3.0
    assert np.square(radii).mean() == pytest.approx(4.5, abs=0.2)  # even over the disc
    for env_id in BODIES:
        exponents = tasks_of(env_id[len("music_tf/") : -len("-v0")], 100)
        assert np.abs(exponents).max() <= 3.0
        assert exponents.std() == pytest.approx(3.0 / np.sqrt(3.0), abs=0.05)


@pytest.mark.parametrize("env_id", [*sorted({*ROBOT_FAMILIES} - {*BODIES}), *PLACES])
def test_two_tasks_differ_in_what_they_pay_and_in_nothing_else(env_id):
    envs = LockstepEnvs(env_id, 2)
    tasks = envs.sample_tasks(2, np.random.default_rng(0))
    np.testing.assert_array_equal(*envs.reset([0, 1], [3, 3], tasks=tasks).observation)
    action = np.full((2, envs.spec.action_dim), 0.3, np.float32)
    for _ in range(3):
        played = envs.step(action, [0, 1])
        np.testing.assert_array_equal(*played.observation)
        assert abs(played.reward[0] - played.reward[1]) > 1e-3


@pytest.mark.parametrize("env_id", BODIES)
def test_bodies_come_back_to_the_bit_and_are_scaled_from_what_they_were(env_id):
    environment = make_environment(env_id)
    model, set_task = environment.unwrapped.model, environment.get_wrapper_attr("set_task")
    sample = environment.get_wrapper_attr("sample_tasks")
    before = arrays_of(model)
    tasks = sample(2, np.random.default_rng(0))
    set_task(tasks[0])
    other = arrays_of(model)
    written = {"body_mass", "body_inertia", "geom_friction", "dof_damping"}
    derived = {"body_invweight0", "dof_invweight0", "dof_M0", "body_subtreemass"}
    assert different(before, other) >= written | derived
    masses = tasks[0][: model.nbody - 1]  # the first numbers; the world has no mass
    np.testing.assert_allclose(other["body_mass"][1:], before["body_mass"][1:] * 1.5**masses)
    joints = before["dof_damping"] != 0.0
    damping = tasks[0][-int(joints.sum()) :]  # the last ones; the root is not damped
    expected = before["dof_damping"][joints] * 1.3**damping
    np.testing.assert_allclose(other["dof_damping"][joints], expected)
    set_task(tasks[1])
    set_task(tasks[0])  # whatever was before
    assert different(other, arrays_of(model)) == set()
    set_task(np.zeros_like(tasks[0]))
    assert different(before, arrays_of(model)) == set()


def test_a_task_has_an_exponent_for_each_number_of_a_body_that_is_not_zero():
    # masses, inertia and friction of 7 bodies and 8 geoms of a walker, 4 and 5 of a hopper; joints
    assert tasks_of("Walker2dBodies", 1).shape == (1, 7 + 7 * 3 + 8 * 3 + 6)
    assert tasks_of("HopperBodies", 1).shape == (1, 4 + 4 * 3 + 5 * 3 + 3)


@pytest.mark.parametrize("env_id", [*BODIES, *PLACES])
def test_a_task_outlives_resets_and_is_given_to_an_environment_that_is_made_anew(env_id):
    plain, remade = LockstepEnvs(env_id, 1), LockstepEnvs(env_id, 1, EnvConfig(remake=True))
    task = plain.sample_tasks(1, np.random.default_rng(2))

    def played(envs, task):
        envs.reset([0], [5], tasks=task)
        action = np.full((1, envs.spec.action_dim), 0.4, np.float32)
        steps = [envs.step(action, [0]) for _ in range(4)]
        return np.array([[*step.observation[0], step.reward[0]] for step in steps])

    usual = played(plain, np.zeros_like(task))
    expected = played(plain, task)
    assert np.abs(expected[-1] - usual[-1]).max() > 1e-3
    for envs, asked in ((plain, None), (remade, task), (remade, task)):
        first = envs._members[0]
        np.testing.assert_array_equal(played(envs, asked), expected)
    assert envs._members[0] is not first
