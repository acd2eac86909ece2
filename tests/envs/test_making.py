import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium_robotics.utils import mujoco_utils

from music_tf.envs import making, simulator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import GOAL_KEYS, find_spec, goal_environments, make_environment
from music_tf.errors import EnvironmentFault, Stopped, UsageError
from music_tf.process.children import PIP_INSTALL
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.odd import ODD
from tests.kit.started import python


@cases(
    ("typed", "meant"),
    ("FetchPush-v3", "FetchPush-v4"),
    ("fetchpickandplace", "FetchPickAndPlace-v4"),
    ("FetchSlide-v1", "FetchSlide-v4"),  # which needs mujoco-py
    ("PointPush-v0", "music_tf/PointPush-v0"),
    ("Odd-v1", ODD),
    ("tests.kit.arm:Arm-v1", "tests.kit.arm:Arm-v0"),
    ("tests.kit.arm:ArmWithGoal-v0", "tests.kit.arm:ArmWithGoals-v0"),
    ("tests.kit.arm:FetchPush-v3", "FetchPush-v4"),
    ("tests.kit.arm:PandaPush-v2", "panda_gym:PandaPush-v3"),
)
def test_an_unknown_id_brings_the_nearest_one_as_it_is_typed(odd, typed, meant):
    if meant.startswith("panda"):
        pytest.importorskip("panda_gym", reason="the extra 'panda' is not installed")
    with pytest.raises(UsageError, match=rf"^env_id: .*'{typed}'.*; did you mean '{meant}'\?"):
        find_spec(typed)
    assert not {"CartPole-v1", "FetchSlide-v1"} & {*goal_environments()}


@cases(
    ("module", "text"),
    ("silent_one", r"'silent_one' registers none\ncure: gymnasium.register"),
    ("user_arm", r"current folder\ndid you mean users_arm\?$"),
    ("no_such_module.part", r"(?s)'no_such_module\.part' cannot be .*installed or"),
    ("faulty_module", r"cannot be imported: SyntaxError: .*_module\.py, line 1"),
)
def test_a_module_that_is_not_there_or_faulty_is_named(tmp_path, monkeypatch, module, text):
    monkeypatch.setattr(gymnasium, "registry", {})
    (tmp_path / "silent_one.py").write_text("speed = 1.0\n")
    (tmp_path / "users_arm.py").write_text("")
    (tmp_path / "faulty_module.py").write_text("def unfinished(:\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=text):
        find_spec(f"{module}:Mine-v0")


class Rewarding(gymnasium.Wrapper):  # computes rewards for an environment that does not
    def compute_reward(self, achieved, desired, info):
        return 0.0


def goals(size):
    return spaces.Dict(dict.fromkeys(GOAL_KEYS, spaces.Box(0, 1, size)))


@cases(
    ("env_id", "space", "told"),
    (COUNTING, spaces.Box(0, 1, (8, 8, 3)), r"got Box.*\nregister what is no image under"),
    (COUNTING, spaces.Discrete(3), r"Discrete\(3\)\n.*FlattenObservation\(Counting\(\*\*options"),
    (COUNTING, spaces.Box(0, 1, (1, 4)), r"got Box\(0.0, 1.0, \(1, 4\), float32\)\n.*Flatten"),
    (COUNTING, spaces.Dict({"arm": spaces.Box(0, 1, (2,))}), r"got a dict with \['arm'\]\n"),
    (
        COUNTING,
        goals((2,)),
        r"compute_reward\(self, achieved_goal, desired_goal, info\) of .*elf\n",
    ),
    ("Rewarding", goals((2,)), r"of the environment itself\n.*; derive the wrapper from gymnasium"),
    (ODD, goals((2, 3)), r"vectors \[N\], got shapes \{'observation': \(2, 3\)"),
)
def test_observations_that_are_no_vector_are_refused(odd, env_id, space, told, monkeypatch):
    made = gymnasium.make(ODD if env_id == ODD else COUNTING)
    monkeypatch.setattr(made.unwrapped, "observation_space", space)
    made = Rewarding(made) if env_id == "Rewarding" else made
    monkeypatch.setattr(gymnasium, "make", lambda *_args, **_options: made)
    with pytest.raises(UsageError, match=told):
        make_environment(ODD)


def test_a_task_of_discrete_actions_names_its_continuous_sibling():
    with pytest.raises(UsageError, match=r"Discrete\(3\); did you mean 'MountainCarContinuous-v0'"):
        LockstepEnvs("MountainCar-v0", 1)


def test_faults_of_creation_give_their_reason(odd, monkeypatch):
    monkeypatch.setattr(odd, "__init__", lambda self: 1 / 0)
    with pytest.raises(EnvironmentFault, match=r"created \(ZeroDivisionError.*\n.*doctor"):
        make_environment(ODD)


def test_what_gymnasium_robotics_logs_to_follows_standard_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "gymnasium_robotics.py").write_text(
        "import logging, sys\n"
        "sys.stderr.write('Adroit is not here\\n')\n"
        "logger = logging.getLogger('of robotics')\n"
        "logger.propagate = False\n"
        "logger.addHandler(logging.StreamHandler(sys.stderr))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gymnasium_robotics", raising=False)
    making.import_robotics.__wrapped__()
    logging.getLogger("of robotics").warning("told later")
    assert capsys.readouterr().err == "told later\n"


class Kind:  # as a member of an enumeration from MuJoCo 3.12 on
    def __init__(self, value):
        self.value = value

    __int__ = __index__ = lambda self: self.value
    __hash__ = object.__hash__

    def __eq__(self, other):
        return type(other) is int and other == self.value


def test_joints_are_placed_by_any_mujoco_and_nothing_changes_where_they_were(monkeypatch):
    making.import_robotics()
    by_itself = mujoco.mjtJoint.mjJNT_HINGE == np.int32(mujoco.mjtJoint.mjJNT_HINGE)
    assert (mujoco_utils.mujoco is mujoco) == by_itself
    kinds = {name: Kind(int(kind)) for name, kind in mujoco.mjtJoint.__members__.items()}
    kinds = SimpleNamespace(__members__=kinds, **kinds)
    monkeypatch.setattr(
        mujoco_utils, "mujoco", SimpleNamespace(**vars(mujoco) | {"mjtJoint": kinds})
    )
    robot = make_environment("Hopper-v5").unwrapped
    with pytest.raises(AssertionError):
        mujoco_utils.set_joint_qpos(robot.model, robot.data, "thigh_joint", 0.5)
    simulator.mend_joints()
    mujoco_utils.set_joint_qpos(robot.model, robot.data, "thigh_joint", 0.5)
    mujoco_utils.set_joint_qvel(robot.model, robot.data, "thigh_joint", 0.25)
    assert mujoco_utils.get_joint_qpos(robot.model, robot.data, "thigh_joint") == [0.5]
    assert mujoco_utils.get_joint_qvel(robot.model, robot.data, "thigh_joint") == [0.25]
    mended = mujoco_utils.mujoco
    assert (mended.mjtObj, mended.mj_forward) == (mujoco.mjtObj, mujoco.mj_forward)
    simulator.mend_joints()
    assert mujoco_utils.mujoco is mended


def test_a_mujoco_that_computes_wrongly_is_refused(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "4.0.0")
    with pytest.raises(EnvironmentFault, match=r"another MuJoCo than 4.0.0.*\n.*mujoco>=3.3,!=4"):
        make_environment("Hopper-v5")


def test_gymnasium_robotics_is_mended_where_others_have_loaded_it(monkeypatch):
    make_environment("FetchReach-v4")
    calls = []
    monkeypatch.setattr(making, "import_robotics", lambda: calls.append("mended"))
    find_spec("FetchReach-v4")
    assert calls == ["mended"]


def test_missing_gymnasium_robotics_is_named_with_its_cure(monkeypatch):
    making.import_robotics()
    monkeypatch.delitem(gymnasium.registry, "FetchPush-v4")
    monkeypatch.delitem(sys.modules, "gymnasium_robotics")
    with pytest.raises(EnvironmentFault, match=r"in this environment: .* gymnasium-robotics"):
        find_spec("FetchPush-v4")
    monkeypatch.setattr(making, "stop_requested", lambda: True)  # the import may have ended by it
    with pytest.raises(Stopped):
        find_spec("FetchPush-v4")


@cases(
    ("env_id", "missing", "extra"),
    ("BipedalWalker-v3", "Box2D", "box2d"),
    ("LunarLanderContinuous-v3", "Box2D", "box2d"),
    ("panda_gym:PandaPush-v3", "panda_gym", "panda"),
    ("my_bullet:Mine-v0", "pybullet", "panda"),
)
def test_a_missing_simulator_is_named_with_our_extra(env_id, missing, extra, tmp_path, monkeypatch):
    (tmp_path / "my_bullet.py").write_text("import pybullet\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)  # so that importing it fails
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EnvironmentFault) as caught:
        make_environment(env_id)
    first, cure = str(caught.value).splitlines()
    assert first.startswith(f"{env_id}: its simulator is not installed (")
    assert missing in first
    assert cure == f"cure, in this environment: {PIP_INSTALL} 'music_tf[{extra}]'"
    setup = Path(making.__file__).resolve().parents[2] / "setup.py"
    assert f'"{extra}": [' in setup.read_text()


@pytest.mark.thorough
def test_importing_gymnasium_robotics_prints_nothing_and_a_toy_does_not_load_it():
    code = "from music_tf.envs import making; making.make_environment('FetchPush-v4')"
    done = python(code)  # the notice comes once per process
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    code = (
        "import sys\nfrom music_tf.envs import making\n"
        "making.make_environment('music_tf/PointPush-v0')\n"
        "sys.exit('mujoco' in sys.modules or 'gymnasium_robotics' in sys.modules)"
    )
    assert python(code).returncode == 0
