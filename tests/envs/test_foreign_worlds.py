"""Other people's environments: ends, stages, goals and warnings as they write them."""

import json

import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import UsageError
from tests.kit import carts, ends
from tests.kit.cases import cases

STILL = np.zeros((1, 1), np.float32)


@cases(
    ("name", "terminated", "success"),
    ("FinalObs", False, True),
    ("FinalObservation", True, True),
    ("OldLimit", False, False),
    ("OldEnd", True, False),
)
def test_an_episode_ends_with_its_own_last_state_and_by_a_limit_of_time(name, terminated, success):
    envs = LockstepEnvs(f"tests.kit.ends:{name}-v0", 1)
    envs.reset([0], [3])
    for _ in range(ends.END):
        taken = envs.step(STILL, [0])
    assert taken.observation.tolist() == [[300.0, ends.END]]
    assert (taken.terminated[0], taken.truncated[0]) == (terminated, not terminated)
    assert taken.success[0] == success
    assert not any(taken.faults)


STAGES = {
    "body_mass": {"mass": {"cart": 4.0}},
    "geom_friction": {"friction": {"*": 2.0}},
    "dof_damping": {"damping": {"x": 3.0}},
    "actuator_gear": {"gear": {"pull": 0.5}},
    "body_pos": {"place": {"wall": [1.0, 0.0, 0.1]}},
    "gravity": {"gravity": 0.5},
    "strength": {"set": {"strength": 2.0}},
}


def in_stages(name, stage):
    changes = json.dumps([{}, {"at": {"steps": 1}, **stage}])
    return LockstepEnvs(f"tests.kit.carts:{name}-v0", 1, EnvConfig(changes=changes))


@pytest.mark.parametrize("kind", STAGES)
def test_a_stage_that_a_reset_overwrites_is_refused_with_its_name(kind):
    envs = in_stages("OwnNumbers", STAGES[kind])
    envs.reset([0], [0])
    envs.set_world(1)
    with pytest.raises(UsageError, match=rf"stage 1: {kind}: OwnNumbers-v0: reset overwrites"):
        envs.reset([0], [0])
    with pytest.raises(UsageError, match=r"stage 0: reset: Anew-v0: builds its model anew"):
        in_stages("Anew", STAGES["body_mass"]).reset([0], [0])


def test_a_stage_leaves_what_it_does_not_change_to_the_environment():
    envs = in_stages("DrawsTheWall", {**STAGES["body_mass"], "place": {"cart": [0.0, 1.0, 0.1]}})
    for stage in (0, 1, 0):
        envs.set_world(stage)
        envs.reset([0], [0])


@cases(("name", "installs"), *(("Blows", "reset"), ("Blows", "step"), ("BlowsHidden", "reset")))
def test_a_warning_is_a_fault_whoever_handles_it(name, installs, monkeypatch):
    monkeypatch.setattr(carts.Blows, "installs", installs)
    envs = LockstepEnvs(f"tests.kit.carts:{name}-v0", 1)
    for _ in range(2):  # also after its reset
        envs.reset([0], [0])
        faults = [envs.step(STILL, [0]).faults[0] for _ in range(4)]
        assert [fault is None for fault in faults] == [True, True, False, False]
        assert "step 3: MuJoCo warns: Nan, Inf or huge value in QPOS at DOF 0" in faults[2]


@pytest.mark.parametrize("name", ["Pixels", "Flags", "Cells"])
def test_goals_are_rewarded_in_the_type_of_their_space(points, name):
    envs = LockstepEnvs(f"{name}-v0", 1)
    space = envs.environment.observation_space["desired_goal"]
    drawn, near = np.random.default_rng(0).integers([[[0]], [[-3]]], [[[250]], [[4]]], (2, 50, 2))
    goals = [
        np.minimum(some, space.high).astype(space.dtype) for some in (drawn, abs(drawn + near))
    ]
    expected = envs.environment.unwrapped.compute_reward(*goals, {})
    rewards = envs.goal_reward(*(some.astype(np.float32) for some in goals))
    np.testing.assert_array_equal(rewards, expected)
    assert len(np.unique(rewards)) > 1
    beyond = np.full((1, 2), 1e9, np.float32)
    assert name == "Cells" or envs.goal_reward(beyond, beyond) == [0.0]
    given = goals[0][:1].astype(np.float32)
    assert envs.reset([0], [0], goals=given).desired_goal.tolist() == given.tolist()
    assert envs.environment.unwrapped.goal.dtype == space.dtype
