import json

import gymnasium
import numpy as np
import pytest

import music_tf.envs  # noqa: F401 - registers them
from music_tf.config.settings import EnvConfig
from music_tf.envs.lockstep import LockstepEnvs


def test_an_ant_is_paid_for_what_a_step_brings_it_nearer_to_its_goal():
    environment = gymnasium.make("music_tf/AntGoals-v0").unwrapped
    first, _ = environment.reset(seed=3)
    assert first.shape == (29 + 2,)
    np.testing.assert_allclose(np.linalg.norm(first[:2] + first[-2:]), 4.0, rtol=1e-6)
    total = 0.0
    generator = np.random.default_rng(0)
    for _ in range(20):
        state, reward, *_, info = environment.step(generator.uniform(-1, 1, 8))
        total += reward
        assert info["distance"] == pytest.approx(np.linalg.norm(state[-2:]))
        np.testing.assert_allclose(state[:2] + state[-2:], first[:2] + first[-2:], atol=1e-9)
    assert total == pytest.approx(np.linalg.norm(first[-2:]) - np.linalg.norm(state[-2:]))
    again, _ = environment.reset(seed=3)
    np.testing.assert_array_equal(again, first)
    other, _ = environment.reset(seed=4)
    assert np.abs(other[-2:] - first[-2:]).max() > 1e-3


@pytest.mark.parametrize(("name", "joints"), [("HalfCheetah", 6), ("Ant", 8), ("AntGoals", 8)])
def test_a_broken_joint_does_nothing(name, joints):
    env_id = f"music_tf/{name}-v0"
    whole, broken = (
        LockstepEnvs(env_id, 1, EnvConfig(kwargs=json.dumps({"broken_joint": joint})))
        for joint in (None, joints - 1)
    )
    action = np.random.default_rng(0).uniform(-1, 1, (1, joints)).astype(np.float32)
    weak = action.copy()
    weak[0, -1] = 0.0
    for envs in (whole, broken):
        envs.reset([0], [7])
    with_all = whole.step(action, [0]).observation
    found = broken.step(action, [0]).observation
    assert np.abs(found - with_all).max() > 1e-4
    whole.reset([0], [7])
    np.testing.assert_allclose(found, whole.step(weak, [0]).observation, atol=1e-5)
    for envs in (whole, broken):
        envs.close()


def touches(environment, radius, angle):  # whether an ant that is put there touches a block
    unwrapped, model = environment.unwrapped, environment.unwrapped.model
    environment.reset(seed=0)
    place = np.array([radius * np.cos(angle), radius * np.sin(angle), 0.75])
    unwrapped.set_state(np.array([*place, *unwrapped.data.qpos[3:]]), unwrapped.data.qvel)
    pairs = unwrapped.data.contact.geom
    bodies = [model.body(model.geom_bodyid[geom]).name for geom in pairs.ravel()]
    return any(name.startswith("block_") for name in bodies)


def test_a_ring_of_blocks_holds_the_ant_and_opens_quarter_by_quarter():
    environment = gymnasium.make("music_tf/AntBlocks-v0")
    unwrapped = environment.unwrapped
    assert (environment.spec.max_episode_steps, environment.reset(seed=1)[0].shape) == (200, (29,))
    around = 0.07 + np.arange(40) * np.pi / 20
    assert {touches(environment, 8.0, angle) for angle in around} == {True}
    assert {touches(environment, 5.5, angle) for angle in around} == {False}
    for opened in (0, 1, 3, 4):
        unwrapped.opened = opened
        middles = [np.pi / 4 + quarter * np.pi / 2 for quarter in range(4)]
        assert [touches(environment, 8.0, middle) for middle in middles] == [
            quarter >= opened for quarter in range(4)
        ]
        blocks = [unwrapped.model.body(f"block_{number}") for number in range(40)]
        assert sum(block.pos[2] < -3.0 for block in blocks) == 10 * opened
    with pytest.raises(ValueError, match="expected 0 to 4 open quarters, got 5"):
        unwrapped.opened = 5


def test_an_ant_that_stays_inside_moves_as_one_without_blocks():
    plain, ringed = (gymnasium.make(f"music_tf/{name}-v0") for name in ("Ant", "AntBlocks"))
    generator = np.random.default_rng(0)
    states = [environment.reset(seed=2)[0] for environment in (plain, ringed)]
    for _ in range(20):
        action = generator.uniform(-1, 1, 8)
        states = [environment.step(action)[0] for environment in (plain, ringed)]
        np.testing.assert_allclose(*states, rtol=1e-6, atol=1e-9)
