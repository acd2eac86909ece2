import numpy as np

from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.scripted import StraightShove
from music_tf.measures.behaviour import summarize


def state(gripper, place):
    return np.array([[*gripper, *place, *[0.0] * 19]], np.float32)


def act(shove, states, actions=4):
    return shove(states, None, None, np.zeros((len(states), actions), np.float32))


def test_a_shove_goes_above_behind_the_object_lowers_and_drives_through_blindly():
    # The object is 0.2 m ahead in x, so the gripper goes to 0.1 m before it and 0.06 m above:
    # an offset of (0.1, 0, 0.06), and ten times that stays within the bounds.
    start = state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4))
    action = act(StraightShove(), start)
    np.testing.assert_allclose(action, [[1.0, 0.0, 0.6, -1.0]], atol=1e-5)
    # elsewhere in the observation, and without fingers
    moved = np.roll(start, 7, axis=1)
    action = act(StraightShove((7, 8, 9), (10, 11, 12)), moved, actions=3)
    np.testing.assert_allclose(action, [[1.0, 0.0, 0.6]], atol=1e-5)
    # by other numbers of the action: z, x, the fingers, y
    action = act(StraightShove(arm=(1, 3, 0)), start)
    np.testing.assert_allclose(action, [[0.6, 1.0, -1.0, 0.0]], atol=1e-5)
    shove = StraightShove()
    act(shove, state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4)))
    lower = act(shove, state((1.1, 0.7, 0.46), (5.0, 5.0, 5.0)))
    np.testing.assert_allclose(lower, [[0.0, 0.0, -0.6, -1.0]], atol=1e-5)
    drive = act(shove, state((1.1, 0.7, 0.4), (5.0, 5.0, 5.0)))
    np.testing.assert_allclose(drive, [[1.0, 0.0, 0.0, -1.0]], atol=1e-5)


def test_a_shove_goes_in_the_given_direction_and_along_x_right_above_the_object():
    # Upwards in y, so the gripper first goes to 0.1 m below the object in y: 0.2 m in x, -0.1 in y.
    shove = StraightShove(angles=np.float32([np.pi / 2]))
    action = act(shove, state((1.0, 0.7, 0.4), (1.2, 0.7, 0.4)))
    np.testing.assert_allclose(action, [[1.0, -0.5, 0.3, -1.0]], atol=1e-5)
    beside = state((1.0, 0.7, 0.6), (1.2, 0.7, 0.4))
    action = act(StraightShove(), np.concatenate([state((1.2, 0.7, 0.6), (1.2, 0.7, 0.4)), beside]))
    # to 0.1 m before the object and 0.06 m above it, each within the bounds: (-0.1, 0, -0.14)
    np.testing.assert_allclose(action[0], [-0.1 / 0.14, 0.0, -1.0, -1.0], atol=1e-5)
    np.testing.assert_allclose(action[1], [0.1 / 0.14, 0.0, -1.0, -1.0], atol=1e-5)


def test_shove_moves_the_block_far_but_onto_the_floor():
    episodes = 6
    envs = LockstepEnvs("FetchPush-v4", episodes)
    rows = range(episodes)
    shove = StraightShove()
    states = [envs.reset(rows, rows).observation]
    for _ in range(50):
        states.append(envs.step(act(shove, states[-1]), rows).observation)
    metrics = summarize(np.stack(states, axis=1), np.full(episodes, 50), envs.info)
    assert 0.5 < metrics["eval/object_displacement_m"] < 0.8
    assert metrics["eval/object_on_support_rate"] < 0.2
    assert metrics["eval/object_comotion_m"] < 0.05
