import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.config.world import DESCRIPTOR, World
from music_tf.envs.descriptors import foot_contacts, plane, xy
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from tests.kit.cases import cases


@cases(
    ("env_id", "feet"), ("Ant-v5", 4), ("HalfCheetah-v5", 2), ("Hopper-v5", 1), ("Walker2d-v5", 2)
)
def test_feet_touch_the_floor_where_their_shapes_reach_it(env_id, feet):
    environment = gymnasium.make(env_id).unwrapped
    environment.reset(seed=0)
    generator = np.random.default_rng(0)
    seen = []
    for _ in range(200):
        environment.step(generator.uniform(-1, 1, environment.action_space.shape))
        found = foot_contacts(environment)
        names = [environment.model.geom(n).name for n in range(environment.model.ngeom)]
        touching = {
            names[geom]
            for contact in environment.data.contact
            for geom in (contact.geom1, contact.geom2)
            if "floor" in (names[contact.geom1], names[contact.geom2])
        }
        word = "ankle" if env_id == "Ant-v5" else "foot"
        assert found.tolist() == [float(name in touching) for name in names if word in name]
        seen.append(found)
    assert np.shape(seen) == (200, feet)
    assert 0.0 < np.mean(seen) < 1.0


@cases(
    ("env_id", "entries"),
    ("HalfCheetah-v5", ("x_position",)),
    ("Hopper-v5", ("x_position", "z_distance_from_origin")),
    ("Walker2d-v5", ("x_position", "z_distance_from_origin")),
    ("Ant-v5", ("x_position", "y_position")),
)
def test_the_plane_of_a_robot_is_x_and_z_where_it_runs_along_a_line_else_x_and_y(env_id, entries):
    environment = gymnasium.make(env_id).unwrapped
    environment.reset(seed=0)
    for _ in range(5):
        *_, info = environment.step(np.full(environment.action_space.shape, 0.5))
    found = plane(environment)
    assert found.shape == (2,)
    start = [0.0, environment.init_qpos[1]] if "z_distance_from_origin" in info else [0.0, 0.0]
    np.testing.assert_allclose((found - start)[: len(entries)], [info[name] for name in entries])
    environment.data.qpos[:2] = 7.0, 3.0
    for read in (plane, xy) if env_id == "Ant-v5" else (plane,):
        np.testing.assert_array_equal(read(environment), [7.0, 3.0])


def test_the_plane_of_a_swimmer_is_that_of_its_centre_of_mass_which_a_turned_joint_moves():
    environment = gymnasium.make("Swimmer-v5").unwrapped
    environment.reset(seed=0)
    environment.set_state(np.array([2.0, 1.0, 0.0, 0.0, 0.0]), np.zeros(5))
    straight = plane(environment)
    np.testing.assert_allclose(straight[1], 1.0, atol=1e-9)
    environment.set_state(np.array([2.0, 1.0, 0.0, np.pi / 2, 0.0]), np.zeros(5))
    bent = plane(environment)
    masses = environment.model.body_mass[1:]
    np.testing.assert_allclose(masses, masses[0])
    # the second and third of three equal rods of length 1 turn from -x to -y about the first's end
    np.testing.assert_allclose(bent - straight, [(0.5 + 1.5) / 3, -(0.5 + 1.5) / 3], atol=1e-6)


@pytest.mark.parametrize(("word", "size"), [("xy", 2), ("plane", 2), ("foot_contacts", 4)])
def test_a_run_may_tell_skills_apart_by_its_name_alone(word, size):
    envs = LockstepEnvs("Ant-v5", 1, EnvConfig(), world=World(descriptor=(word,)))
    assert envs.spec.extras == {DESCRIPTOR: size}
    assert envs.info.unit == ("" if word == "foot_contacts" else "m")  # in pictures of paths
    envs.reset([0], [3])
    assert envs.step(np.zeros([1, 8], np.float32), [0]).extras[DESCRIPTOR].shape == (1, size)
    envs.close()


@cases(
    ("word", "env_id", "text"),
    ("xy", "Hopper-v5", "expected a robot that moves freely, such as Ant-v5; or give columns"),
    ("xy", "Pendulum-v1", "expected a robot that moves freely"),
    ("plane", "Reacher-v5", "expected a robot held to a line, a swimmer, or one that"),
    ("plane", "music_tf/UnitBox-v0", "expected a robot held to a line, a swimmer, or one"),
    ("foot_contacts", "Swimmer-v5", "expected a robot with feet and a floor, such as Ant-v5"),
    ("foot_contacts", "Pendulum-v1", "expected a robot with feet and a floor"),
)
def test_robots_without_it_are_refused(word, env_id, text):
    with pytest.raises(UsageError, match=rf"world\.descriptor: {word} on {env_id}: {text}"):
        LockstepEnvs(env_id, 1, EnvConfig(), world=World(descriptor=(word,)))
