"""A changing world: what a stage changes, that defaults come back to the bit, and refusals."""

import json

import mujoco
import numpy as np
import pytest

from music_tf.config.changes import stages_of
from music_tf.config.settings import EnvConfig
from music_tf.envs.changes import Changes
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.errors import UsageError
from tests.envs.test_lockstep import play
from tests.kit import carts
from tests.kit.cases import cases

ANT = "Ant-v5"
SQUARE = "music_tf/Square-v0"
WALL = json.dumps([{"set": {"wall": True}}, {"at": {"steps": 1}}])
OTHER = {
    "at": {"steps": 1},
    "mass": {"*": 2.0, "torso": 3.0},
    "friction": {"floor": 0.5},
    "damping": {"hip_1": 4.0},
    "gear": {"hip_4": 0, "ankle_4": 0},
    "gravity": 0.5,
}
BACK = json.dumps([{}, OTHER])


def arrays_of(model):  # copies of every array of a model and of its options
    found = {}
    for prefix, owner in (("", model), ("opt.", model.opt), ("stat.", model.stat)):
        for name in (name for name in dir(owner) if not name.startswith("_")):
            value = getattr(owner, name)
            if isinstance(value, np.ndarray | int | float):
                found[prefix + name] = np.copy(value)
    return found


def different(one, other):
    return {name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)}


def test_the_defaults_of_an_ant_come_back_to_the_bit_in_every_array_of_its_model():
    environment = make_environment(ANT)
    model = environment.unwrapped.model
    before = arrays_of(model)
    assert len(before) > 400
    changes = Changes(environment, stages_of(BACK))
    changes.apply(1)
    derived = {"body_invweight0", "dof_invweight0", "dof_M0", "body_subtreemass", "actuator_acc0"}
    written = {"body_mass", "body_inertia", "geom_friction", "dof_damping", "actuator_gear"}
    assert different(before, arrays_of(model)) >= derived | written | {"opt.gravity"}
    changes.apply(0)
    assert different(before, arrays_of(model)) == set()


def test_factors_count_from_the_defaults_and_a_name_counts_in_place_of_all():
    environment = make_environment(ANT)
    model = environment.unwrapped.model
    before = arrays_of(model)
    again = OTHER | {"at": {"steps": 2}, "gravity": 2.0}
    changes = Changes(environment, stages_of(json.dumps([{}, OTHER, again])))
    for _ in range(2):  # whatever was before
        changes.apply(2)
        changes.apply(1)
    factors = np.where(np.arange(model.nbody) == model.body("torso").id, 3.0, 2.0)
    np.testing.assert_array_equal(model.body_mass, factors * before["body_mass"])
    np.testing.assert_array_equal(model.body_inertia, factors[:, None] * before["body_inertia"])
    np.testing.assert_array_equal(model.opt.gravity, 0.5 * before["opt.gravity"])
    floor, hip = model.geom("floor").id, int(model.joint("hip_1").dofadr[0])
    np.testing.assert_array_equal(model.geom_friction[floor], 0.5 * before["geom_friction"][floor])
    assert not different({"own": model.geom_friction[1:]}, {"own": before["geom_friction"][1:]})
    assert model.dof_damping[hip] == 4.0 * before["dof_damping"][hip]
    assert np.flatnonzero(model.dof_damping != before["dof_damping"]).tolist() == [hip]
    broken = [model.joint(name).id for name in ("hip_4", "ankle_4")]  # motors have no names there
    assert sorted(model.actuator_trnid[model.actuator_gear[:, 0] == 0, 0]) == sorted(broken)


def test_welds_stay_as_the_environment_set_them_when_a_stage_is_applied(monkeypatch):
    environment = make_environment("FetchPush-v4")
    model = environment.unwrapped.model
    before = model.eq_data.copy()
    monkeypatch.setattr(mujoco, "mj_setConst", lambda model, data: model.eq_data.fill(0.5))
    Changes(environment, stages_of('[{}, {"at": {"steps": 1}, "gravity": 0.5}]')).apply(1)
    np.testing.assert_array_equal(model.eq_data, before)


@pytest.mark.parametrize("env_id", [ANT, "FetchPush-v4"])
def test_episodes_after_a_restored_world_are_those_of_one_that_never_changed(env_id):
    other = {"at": {"steps": 1}, "mass": {"*": 2.0}, "gravity": 0.7}
    envs = LockstepEnvs(env_id, 1, EnvConfig(changes=json.dumps([{}, other])))
    expected = play(LockstepEnvs(env_id, 1), seed=5)
    np.testing.assert_equal(play(envs, seed=5), expected)
    envs.set_world(1)
    changed = play(envs, seed=5)
    assert not all(np.array_equal(one, two) for one, two in zip(changed, expected, strict=True))
    envs.set_world(0)
    np.testing.assert_equal(play(envs, seed=5), expected)


def test_a_body_of_the_world_stands_where_a_stage_places_it():
    environment = make_environment("FetchPush-v4")
    model = environment.unwrapped.model
    stages = stages_of('[{}, {"at": {"steps": 1}, "place": {"table0": [1.0, 2.0, 0.5]}}]')
    changes = Changes(environment, stages)
    changes.apply(0)
    before = arrays_of(model)
    changes.apply(1)
    np.testing.assert_array_equal(model.body("table0").pos, [1.0, 2.0, 0.5])
    mujoco.mj_forward(model, environment.unwrapped.data)
    np.testing.assert_array_equal(environment.unwrapped.data.body("table0").xpos, [1.0, 2.0, 0.5])
    changes.apply(0)
    assert different(before, arrays_of(model)) == set()


def ends(envs, index=0):  # where full steps to the right lead from the middle of the square
    envs.reset([index], [0])
    for _ in range(4):
        taken = envs.step(np.ones([1, 2], np.float32), [index])
    return taken.observation[0].tolist()


def test_an_environment_takes_a_stage_when_it_resets_and_not_before():
    envs = LockstepEnvs(SQUARE, 2, EnvConfig(changes=WALL))
    assert ends(envs) == [0.0, 4.0]
    envs.reset([0, 1], [0, 0])
    envs.set_world(1)
    taken = envs.step(np.ones([2, 2], np.float32), [0, 1])
    assert taken.observation.tolist() == [[0.0, 1.0]] * 2  # this episode goes on as it was
    assert ends(envs, 1) == [4.0, 4.0]
    taken = envs.step(np.ones([1, 2], np.float32), [0])
    assert taken.observation.tolist() == [[0.0, 2.0]]
    envs.set_world(0)
    assert ends(envs, 1) == [0.0, 4.0]


def test_an_environment_that_is_made_anew_takes_the_present_stage():
    envs = LockstepEnvs(SQUARE, 1, EnvConfig(changes=WALL, remake=True))
    envs.set_world(1)
    assert ends(envs) == [4.0, 4.0]
    first = envs._members[0]
    assert ends(envs) == [4.0, 4.0]
    assert envs._members[0] is not first
    envs._faults[0] = "broke"
    assert ends(envs) == [4.0, 4.0]
    envs._members[0] = None
    assert envs._some_member().environment.unwrapped.wall is False


@cases(
    ("env_id", "stage", "says"),
    (ANT, {"mass": {"torsoo": 2}}, "mass: .* no body 'torsoo', .*\ndid you mean torso?"),
    (ANT, {"friction": {"flor": 2}}, "friction: .* no geom 'flor', .*\ndid you mean floor?"),
    (ANT, {"damping": {"hip1": 2}}, "damping: .* no joint 'hip1', .*\ndid you mean hip_1?"),
    (ANT, {"gear": {"ankle5": 0}}, "gear: .* no actuator 'ankle5', .*\ndid you mean ankle_"),
    (ANT, {"damping": {"root": 2}}, "damping: root: .* is 0 by default"),
    (ANT, {"place": {"torso": [0, 0, 0]}}, "place: torso: .* moves freely"),
    (ANT, {"place": {"aux_1": [0, 0, 0]}}, "place: aux_1: .* is a part of front_left_leg"),
    (ANT, {"place": {"*": [0, 0, 0]}}, r"place: .* no body '\*'"),
    (ANT, {"set": {"wall": True}}, "set: .* no changeable attribute 'wall', it has none"),
    ("Swimmer-v5", {"friction": {"*": 2}, "damping": {"*": 2}}, "damping: .* is 0 by default"),
    ("Pusher-v5", {"gravity": 0.5}, "gravity: .* is 0 by default"),
    (SQUARE, {"gravity": 0.5}, "gravity: .* is no MuJoCo task"),
    (SQUARE, {"set": {"wal": True}}, "set: .* attribute 'wal', it has wall\ndid you mean wall?"),
    (SQUARE, {"set": {"wall": 1}}, "set: wall: .*: expected a value such as False, got 1"),
    ("music_tf/AntBlocks-v0", {"set": {"opened": 5}}, "set: opened: .* 0 to 4 .*, got 5"),
)
def test_what_an_environment_cannot_change_is_refused_when_it_is_made(env_id, stage, says):
    changes = json.dumps([{}, {"at": {"steps": 1}, **stage}])
    with pytest.raises(UsageError, match=f"env.changes: stage 1: {says}"):
        LockstepEnvs(env_id, 1, EnvConfig(changes=changes))


def test_a_single_name_is_no_list_of_letters(monkeypatch):
    monkeypatch.setattr(carts.Cart, "changeable", "strength")
    changes = json.dumps([{}, {"at": {"steps": 1}, "set": {"strength": 2.0}}])
    LockstepEnvs("tests.kit.carts:Cart-v0", 1, EnvConfig(changes=changes)).close()


def test_a_stage_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match=r"env.changes: expected a stage from 0 to 1, got 2"):
        LockstepEnvs(SQUARE, 1, EnvConfig(changes=WALL)).set_world(2)
    with pytest.raises(UsageError, match="expected a stage from 0 to 0, got 1"):
        LockstepEnvs(SQUARE, 1).set_world(1)
