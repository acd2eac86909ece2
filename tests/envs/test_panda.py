"""panda-gym's tasks are stepped really, and train with what is known of them or typed."""

import math
import os

import numpy as np
import pytest

from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.envs.registry import lookup
from music_tf.reading.command import parse_train
from music_tf.runs import comparison
from music_tf.runs.comparison import compare, cover
from music_tf.training.evaluation import Evaluation, zero_policy

pytest.importorskip("panda_gym", reason="the extra 'panda' is not installed")

OBJECT = {"Push": (6, 7, 8), "Slide": (6, 7, 8), "PickAndPlace": (7, 8, 9)}
GRIPPER = (0, 1, 2)
TYPED = "--world.agent 0 1 2 --world.surrounding 6 7 8 --world.object 6 7 8 --world.gripper 0 1 2"


def env_id(task):
    return f"panda_gym:Panda{task}-v3"


def test_messages_of_the_simulator_stay_off_the_terminal(capfd):
    for _ in range(2):
        make_environment(env_id("Push")).close()
    assert capfd.readouterr().out == ""
    os.write(1, b"heard\n")
    assert capfd.readouterr().out == "heard\n"


@pytest.mark.parametrize("task", OBJECT)
def test_what_is_known_is_what_the_simulator_has(task):
    info = lookup(env_id(task))
    assert (info.gripper, info.object, info.arm) == (GRIPPER, OBJECT[task], (0, 1, 2))
    assert (info.split.agent, info.split.surrounding) == (GRIPPER, OBJECT[task])
    assert info.reward_bounds == (-1.0, 0.0)
    assert lookup(env_id(f"{task}Joints")).arm is None
    assert lookup(env_id(f"{task}Dense")).reward_bounds == (-math.inf, 0.0)
    environment = make_environment(env_id(task))
    observation, _ = environment.reset(seed=0)
    for _ in range(20):
        rest = np.zeros(environment.action_space.shape, np.float32)
        observation = environment.step(rest)[0]["observation"]
    sim = environment.unwrapped.sim
    low, high = sim.physics_client.getAABB(sim._bodies_idx["table"])
    environment.close()
    np.testing.assert_allclose(
        [*info.support.low, *info.support.high], [*low[:2], *high[:2]], atol=2e-3
    )
    assert observation[OBJECT[task][2]] == pytest.approx(info.support.rest_height, abs=1e-3)


@pytest.mark.parametrize("task", OBJECT)
def test_an_action_moves_the_gripper_by_x_y_and_z_and_leaves_the_object_where_it_is(task):
    envs = LockstepEnvs(env_id(task), 3)
    started = envs.reset([0, 1, 2], [0, 0, 0])
    thing = started.observation[:, OBJECT[task]]
    np.testing.assert_allclose(thing, started.achieved_goal, atol=1e-6)
    actions = np.eye(3, envs.spec.action_dim, dtype=np.float32)
    for _ in range(3):
        moved = envs.step(actions, [0, 1, 2]).observation - started.observation
    envs.close()
    of_gripper = moved[:, GRIPPER]
    assert (of_gripper.argmax(axis=1) == np.arange(3)).all()
    assert (np.diagonal(of_gripper) > 0.03).all()
    assert np.abs(moved[:, OBJECT[task][:2]]).max() < 1e-3  # it may fall on the table


@pytest.mark.thorough
def test_a_described_world_has_blind_shoves_beside_the_policy(monkeypatch):
    monkeypatch.setattr(comparison, "COVERED", 6)
    words = ["ddpg_music", "--env-id", env_id("Push"), "--evaluation.episodes", "2", *TYPED.split()]
    config = parse_train(words).config
    envs = LockstepEnvs(config.env_id, 2, config.env, None, config.world)
    evaluation = Evaluation(envs, config, Communicator())
    rows = cover(evaluation, zero_policy)
    final = compare(evaluation, zero_policy, 4).policies
    envs.close()
    assert list(rows) == ["ours", "random", "scripted shove", "shove in random directions"]
    assert list(final) == ["ours", "random", "scripted shove"]
    assert final["scripted shove"]["eval/object_moved_rate"] == 1.0
    assert rows["scripted shove"]["coverage/object_cells"] > rows["ours"]["coverage/object_cells"]
