"""The wrappers of docs/environments.md fit: around stand-ins, and around the packages if here."""

import contextlib
import importlib
import importlib.util
import re
import shutil
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from music_tf.config import world as worlds
from music_tf.config.world import DESCRIPTOR
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.tools.check_env import check_environment
from tests.kit.packages import MODULES, stand_in

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "environments.md").read_text(encoding="utf-8")
IDS = {"metaworld_push": "MetaWorldPush-v0", "ogbench_cube": "OGBenchCube-v0"}
DM_ROBOTS = "DmCheetah-v0", "DmSwimmer-v0"
HAND, OBJECT = [0, 1, 2], [4, 5, 6]


@pytest.fixture(params=["stand-in", "package"])
def kind(request):
    return request.param


@pytest.fixture(params=IDS)
def env_id(request, kind, tmp_path, monkeypatch):
    """The id of a wrapper, which stands beside the work of its user."""
    name = request.param
    with beside(name, name.partition("_")[0], kind, [IDS[name]], tmp_path, monkeypatch):
        yield f"{name}:{IDS[name]}"


@pytest.fixture
def dm_robots(kind, tmp_path, monkeypatch):
    with beside("dm_robots", "dm_control", kind, DM_ROBOTS, tmp_path, monkeypatch):
        yield [f"dm_robots:{robot}" for robot in DM_ROBOTS]


@contextlib.contextmanager
def beside(name, package, kind, ids, tmp_path, monkeypatch):
    """Puts an example into the user's folder, and a stand-in in the place of its package."""
    if kind == "stand-in":
        for module in MODULES:
            monkeypatch.setitem(sys.modules, module, stand_in(module))
    elif importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    shutil.copy(DOCS / "examples" / f"{name}.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(worlds, "_REGISTERED", {})
    importlib.invalidate_caches()
    yield
    for registered in ids:
        gymnasium.registry.pop(registered, None)
    sys.modules.pop(name, None)


def test_the_page_has_a_wrapper_for_each():
    assert set(IDS) - set(re.findall(r"\(examples/(\w+)\.py\)", PAGE)) == set()


def test_it_is_without_fault_and_describes_its_columns(env_id):
    checks = check_environment(env_id)
    assert [(check.name, check.detail) for check in checks if not check.ok] == []
    (known,) = [check.detail for check in checks if check.name == "world"]
    assert known.splitlines()[-1] == "known: robot 0 1 2, surroundings 4 5 6; playing agrees"
    envs = LockstepEnvs(env_id, 2)
    started = envs.reset([0, 1], [3, 4], None)
    np.testing.assert_array_equal(started.observation[:, OBJECT], started.achieved_goal)
    assert not np.array_equal(started.achieved_goal[0], started.achieved_goal[1])
    sideways = np.zeros([2, envs.spec.action_dim], np.float32)
    sideways[:, 0] = 1.0
    for _ in range(10):
        moved = envs.step(sideways, [0, 1])
    envs.close()
    assert (moved.observation[:, HAND[0]] - started.observation[:, HAND[0]] > 0.01).all()
    assert (envs.info.object, envs.info.gripper) == (tuple(OBJECT), tuple(HAND))
    away = np.float32([[0.03, 0.0, 0.0], [0.06, 0.0, 0.0]])
    assert envs.goal_reward(moved.achieved_goal, moved.achieved_goal + away).tolist() == [0.0, -1.0]


@pytest.mark.thorough
def test_robots_of_dm_control_are_told_apart_by_where_they_are(dm_robots):
    cheetah, swimmer = dm_robots
    assert [(one.name, one.detail) for one in check_environment(cheetah) if not one.ok] == []
    for robot, far in ((cheetah, [0.0, 0.7]), (swimmer, [0.0, 0.0])):
        assert LockstepEnvs(robot, 1).spec.extras == {DESCRIPTOR: 2}
        unwrapped = make_environment(robot).unwrapped
        unwrapped.reset(seed=0)
        where = sys.modules["dm_robots"].place(unwrapped)
        np.testing.assert_allclose(where, far, atol=0.71)
