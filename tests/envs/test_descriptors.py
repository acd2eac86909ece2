import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.envs.descriptors import foot_contacts, xy
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError


@pytest.mark.parametrize(
    ("env_id", "feet"), [("Ant-v5", 4), ("HalfCheetah-v5", 2), ("Hopper-v5", 1), ("Walker2d-v5", 2)]
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


def test_where_a_robot_is_comes_from_the_simulator():
    environment = gymnasium.make("Ant-v5").unwrapped
    environment.reset(seed=0)
    for _ in range(5):
        *_, info = environment.step(np.full(8, 0.5))
    np.testing.assert_allclose(xy(environment), [info["x_position"], info["y_position"]])


@pytest.mark.parametrize(("word", "size"), [("xy", 2), ("foot_contacts", 4)])
def test_a_run_may_tell_skills_apart_by_its_name_alone(word, size):
    envs = LockstepEnvs("Ant-v5", 1, EnvConfig(), world=World(descriptor=(word,)))
    assert envs.spec.extras == {"descriptor": size}
    envs.reset([0], [3])
    taken = envs.step(np.zeros([1, 8], np.float32), [0])
    assert taken.extras["descriptor"].shape == (1, size)
    envs.close()


@pytest.mark.parametrize(
    ("word", "env_id", "text"),
    [
        ("xy", "Hopper-v5", "expected a robot that moves freely, such as Ant-v5; or give columns"),
        ("xy", "Pendulum-v1", "expected a robot that moves freely"),
        ("foot_contacts", "Swimmer-v5", "expected a robot with feet and a floor, such as Ant-v5"),
        ("foot_contacts", "Pendulum-v1", "expected a robot with feet and a floor"),
    ],
)
def test_robots_without_it_are_refused(word, env_id, text):
    with pytest.raises(UsageError, match=rf"world\.descriptor: {word} on {env_id}: {text}"):
        LockstepEnvs(env_id, 1, EnvConfig(), world=World(descriptor=(word,)))
