import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.scripted import StraightShove
from music_tf.measures.behaviour import summarize


def state(gripper, place):
    return np.array([[*gripper, *place, *[0.0] * 19]], np.float32)


def test_shove_goes_above_behind_the_object_first():
    # The object is 0.2 m ahead in x, so the gripper goes to 0.1 m before it and 0.06 m above:
    # an offset of (0.1, 0, 0.06), and ten times that stays within the bounds.
    action = StraightShove()(state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4)))
    np.testing.assert_allclose(action, [[1.0, 0.0, 0.6, -1.0]], atol=1e-5)


def test_shove_lowers_and_then_drives_through_without_looking_at_the_object():
    shove = StraightShove()
    shove(state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4)))
    lower = shove(state((1.1, 0.7, 0.46), (5.0, 5.0, 5.0)))
    np.testing.assert_allclose(lower, [[0.0, 0.0, -0.6, -1.0]], atol=1e-5)
    drive = shove(state((1.1, 0.7, 0.4), (5.0, 5.0, 5.0)))
    np.testing.assert_allclose(drive, [[1.0, 0.0, 0.0, -1.0]], atol=1e-5)


def test_shove_plans_anew_after_a_reset():
    shove = StraightShove()
    shove(state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4)))
    shove.reset()
    action = shove(state((1.0, 0.7, 0.4), (1.0, 0.9, 0.4)))
    np.testing.assert_allclose(action, [[0.0, 1.0, 0.6, -1.0]], atol=1e-5)


def test_shove_moves_the_block_far_but_onto_the_floor():
    episodes = 6
    envs = LockstepEnvs("FetchPush-v4", episodes)
    rows = range(episodes)
    shove = StraightShove()
    states = [envs.reset(rows, rows).observation]
    for _ in range(50):
        states.append(envs.step(shove(states[-1]), rows).observation)
    metrics = summarize(np.stack(states, axis=1), np.full(episodes, 50), envs.info)
    assert 0.5 < metrics["eval/object_displacement_m"] < 0.8
    assert metrics["eval/object_on_support_rate"] < 0.2
    assert metrics["eval/object_comotion_m"] < 0.05
