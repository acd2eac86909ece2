"""Policies that leave the package act as `load_policy` does."""

import copy
import dataclasses
import json
import sys

import numpy as np
import pytest

import music_tf
from music_tf.cli import run_verb
from music_tf.config.conditioning import ConditionConfig
from music_tf.errors import UsageError
from music_tf.networks.acting import SkillSnapshots, Snapshot
from music_tf.networks.policy import Policy
from music_tf.recipes.distance import DistanceConfig
from music_tf.tools.portable import write_onnx, write_robot
from music_tf.types import bounds_of, to_bounds
from tests.kit.cases import cases
from tests.kit.pearl import small
from tests.kit.saved_run import along, in_a_ball, save_run
from tests.kit.sessions import command_of, run_session
from tests.kit.started import ended

ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from policy import Policy
policy = Policy()
with np.load(sys.argv[2]) as file:
    given = {name: file[name] for name in file.files}
np.save(sys.argv[3], policy.act(**given))
assert not [name for name in sys.modules if name.partition(".")[0] in ("music_tf", "tensorflow")]
try:
    import music_tf
except ImportError:
    print("alone")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    save_run(folder / "goals", "ddpg_her")
    save_run(folder / "two_goals", "ddpg_rher")
    save_run(folder / "zero", "ddpg_music")
    save_run(folder / "gaussian", "sac")
    save_run(folder / "skills", "sac_diayn", skills=3)
    save_run(folder / "pinned", "sac_diayn_finetune", skills=3, pinned_skill=2)
    save_run(folder / "continuous", condition=ConditionConfig(kind="gaussian", size=3))
    save_run(folder / "metra", "sac_metra", **along("sphere", 2))
    save_run(folder / "speedy", "sac_metra", **in_a_ball(2))
    save_run(folder / "metra_skills", "sac_metra", skills=3, **along("one_hot"))
    place = DistanceConfig(columns=(3, 4), speed=2.0, train=False, hidden_sizes=())
    of_two = {"condition": ConditionConfig(kind="ball", size=2, groups=2)}
    save_run(folder / "of_two", "sac_place", rewards={"distance": place}, **of_two)
    places = DistanceConfig(
        columns=(3, 4), normalize_inputs=True, hidden_sizes=(), train=False, reach=4.0
    )
    ball = ConditionConfig(kind="ball", size=2)
    save_run(folder / "places", "sac_place", condition=ball, rewards={"distance": places})
    return folder


def policy_of(runs, run):
    """The policy of a run; `each` is that of `skills` with another actor for each of them."""
    policy = music_tf.load_policy(runs / run.replace("each", "skills"))
    if run == "each":
        weights = policy.snapshot.weights
        policy.snapshot = SkillSnapshots(
            tuple(
                policy.snapshot._replace(weights={n: w * scale for n, w in weights.items()})
                for scale in (1.0, -0.5, 0.7)
            )
        )
    return policy


def arguments(policy, count=7, seed=0):
    """What `act` takes of each policy, for a batch; some numbers are beyond what is clipped."""
    draw = np.random.default_rng(seed)
    given = {"observation": 300.0 * draw.standard_normal([count, policy.observation_dim])}
    given["observation"][0] /= 300.0
    if policy.goal_dim and not policy.zero_goals:
        given["goal"] = draw.standard_normal([count, policy.goal_dim])
    if policy.condition != "one_hot":
        given["skill"] = draw.standard_normal([count, policy.skills])
    elif policy.recipe == "sac_diayn":
        given["skill"] = draw.integers(0, policy.skills, count)
    return given


def acted_alone(folder, given, tmp_path):
    """Actions of the file of Python by itself, without this package in reach."""
    np.savez(tmp_path / "given.npz", **given)
    files = [str(folder), str(tmp_path / "given.npz"), str(tmp_path / "actions.npy")]
    # -S leaves out site-packages, where this package is; numpy's own folder comes back alone
    numpy_only = tmp_path / "numpy_only"
    numpy_only.mkdir(exist_ok=True)
    for name in ("numpy", "numpy.libs"):
        (numpy_only / name).symlink_to(np.__path__[0].removesuffix("numpy") + name)
    code = f"import sys; sys.path.append({str(numpy_only)!r}){ALONE}"
    done = ended(sys.executable, "-I", "-S", "-c", code, *files)
    assert (done.returncode, done.stdout) == (0, "alone\n"), done.stderr
    return np.load(tmp_path / "actions.npy")


def with_place(policy):  # places to reach in place of conditions
    given = arguments(policy)
    given["observation"] /= 300.0
    given["reach"] = np.random.default_rng(1).standard_normal([7, policy.embedding.seen])
    given["reach"][:2] = given["observation"][:2, list(policy.embedding.columns)]  # it is there
    given["reach"][1] += 0.01  # or nearly so
    return {name: given[name] for name in ("observation", "reach")}


RUNS = ("goals", "two_goals", "zero", "gaussian", "skills", "each", "pinned", "continuous")
TO_PLACES = ("metra", "metra_skills", "of_two", "places", "speedy")


@pytest.mark.thorough
@pytest.mark.parametrize("run", [*RUNS, *TO_PLACES])
def test_a_file_of_python_acts_with_numpy_alone_to_the_same_bits(runs, tmp_path, run):
    policy, robot = policy_of(runs, run), tmp_path / "robot"
    write_robot(policy, robot)
    assert sorted(path.name for path in robot.iterdir()) == ["policy.npz", "policy.py"]
    given = with_place(policy) if run in TO_PLACES else arguments(policy)
    expected = policy.act(**given)
    assert len(np.unique(expected, axis=0)) == 7
    np.testing.assert_array_equal(acted_alone(robot, given, tmp_path), expected)
    alone = {name: values[3] for name, values in given.items()}
    np.testing.assert_array_equal(Policy(robot / "policy.npz").act(**alone), policy.act(**alone))


@pytest.fixture(scope="module")
def adapting(tmp_path_factory):
    path = tmp_path_factory.mktemp("adapting")
    beliefs = {"agent__posterior": "full", "agent__context_reward_scale": 3.0}
    config = small(epochs=1, cycles=1, agent__encoder="lstm", **beliefs)
    run_session(command_of(config, path, recipe="sac_pearl", arguments=("sac_pearl",)))
    return path


@pytest.mark.thorough
def test_beliefs_are_those_of_the_policy_and_come_in_by_argument(adapting, tmp_path):
    policy = music_tf.load_policy(adapting)
    write_robot(policy, tmp_path)
    robot, draw = Policy(tmp_path / "policy.npz"), np.random.default_rng(0)
    episodes = [
        (
            draw.standard_normal([5, policy.observation_dim]),
            draw.uniform(-1.0, 1.0, [4, policy.action_dim]),
            draw.standard_normal(4),
        )
        for _ in range(2)
    ]
    observation = draw.standard_normal(policy.observation_dim)
    for known in (0, 1, 2):
        fresh = policy.exploration()
        belief = fresh.adapt(episodes[:known]).belief if known else fresh.belief
        inferred = robot.infer(episodes[:known])
        for found, expected in zip(inferred, belief, strict=True):
            np.testing.assert_array_equal(found, expected)
        latent = robot.draw(inferred, seed=3)
        np.testing.assert_array_equal(latent, fresh.begin_episode(3))
        np.testing.assert_array_equal(robot.act(observation, skill=latent), fresh.act(observation))


@pytest.mark.thorough
def test_beliefs_follow_from_actions_in_the_units_of_act(adapting, tmp_path):
    policy, unit = music_tf.load_policy(adapting), music_tf.load_policy(adapting)
    wide = dataclasses.replace(policy.declared, low=[0.0] * 2, high=[12.0, 4.0])
    policy.declared, policy.bounds = wide, bounds_of(vars(wide))
    write_robot(policy, tmp_path)
    robot, draw = Policy(tmp_path / "policy.npz"), np.random.default_rng(0)
    states, actions = draw.standard_normal([5, 2]), np.float32(draw.uniform(-1.0, 1.0, [4, 2]))
    rewards = draw.standard_normal(4)
    taken = [(states, to_bounds(actions, policy.bounds), rewards)]
    expected = unit.adapt([(states, actions, rewards)]).belief
    for belief in (policy.adapt(taken).belief, robot.infer(taken)):
        np.testing.assert_allclose(belief.mean, expected.mean, atol=1e-5)
    for door in (policy.adapt, robot.infer):
        with pytest.raises(ValueError, match="episodes: expected actions within their bounds"):
            door([(states, np.full([4, 2], 5.0), rewards)])


@cases(  # the checks are those of `load_policy`; a file has what they read
    ("run", "given", "text"),
    ("goals", {}, "goal: ddpg_her was trained on goals; give goal="),
    ("zero", {"goal": [1.0, 0.0, 0.0]}, "goal: ddpg_music was trained without goals"),
    ("skills", {}, r"skill: this run has 3, give one of 0\.\.2"),
    ("zero", {"reach": [0.0, 0.0]}, "reach: ddpg_music on .* cannot go to places"),
    ("continuous", {"goal": [0.0, 0.0, 0.0]}, "skill: ddpg has a gaussian condition"),
    ("metra", {"reach": np.zeros([3, 2])}, r"reach: expected one, .* got \[3, 2\]"),
    ("metra", {"skill": [1.0, 1.0]}, r"skill: expected vectors of length 1, got \[1.0, 1.0\]"),
    ("of_two", {"skill": [1.0, 1.0]}, r"skill: .* of length at most 1, got \[1.0, 1.0\]"),
)
def test_what_a_policy_cannot_act_on_is_refused(runs, tmp_path, run, given, text):
    policy = music_tf.load_policy(runs / run)
    write_robot(policy, tmp_path)
    for door in (policy, Policy(tmp_path / "policy.npz")):
        with pytest.raises(ValueError, match=text):
            door.act(np.zeros(policy.observation_dim), **given)


def test_the_verb_writes_both_beside_the_weights(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--episodes", "1", "--export", "mine", "--parts", "actor,normalizer"]
    assert run_verb(["evaluate", str(runs / "zero"), *words]) == 0
    assert "written: mine/robot, which needs numpy alone\n" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"--onnx: expected a file that ends in \.onnx"):
        run_verb(["evaluate", str(runs / "zero"), "--onnx", "a.txt"])
    policy = music_tf.load_policy("mine")  # the folder is one of weights as before
    given = arguments(policy)
    robot = Policy(tmp_path / "mine/robot/policy.npz")
    np.testing.assert_array_equal(robot.act(**given), policy.act(**given))
    printed = json.loads(ended(sys.executable, "mine/robot/policy.py", cwd=tmp_path).stdout)
    assert printed["observation_dim"] == policy.observation_dim
    assert (printed["environment"]["low"], printed["environment"]["high"]) == ([-1] * 3, [1] * 3)


# ONNX.


@cases("run", "goals", "two_goals", "zero", "gaussian", "skills", "each", "continuous", "speedy")
def test_onnx_acts_as_the_policy_does(runs, tmp_path, run):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    policy = policy_of(runs, run)
    write_onnx(policy, tmp_path / "policy.onnx")
    if isinstance(policy.snapshot, Snapshot):
        mine = copy.copy(policy)
        mine.snapshot = policy.snapshot._replace(actor="mine")
        with pytest.raises(UsageError, match=r"--onnx: .* of this package, got 'mine'"):
            write_onnx(mine, tmp_path)
    session = runtime.InferenceSession(tmp_path / "policy.onnx")
    given = arguments(policy)
    if policy.condition == "ball":  # the condition that leads to a goal is the program's
        here = np.float32(given["observation"][:, policy.embedding.columns])
        given["skill"] = policy.embedding.leading(here, here + np.float32([0.0, 0.3]))
    fed = {"observation": given["observation"]}
    if policy.goal_dim:
        fed["goal"] = given.get("goal", np.zeros([7, policy.goal_dim]))
    if "skill" in given and policy.condition == "one_hot":
        fed["condition"] = np.eye(policy.skills)[given["skill"]]
    else:
        fed["condition"] = given.get("skill", np.ones([7, policy.skills]))
    named = {one.name for one in session.get_inputs()}
    assert ("condition" in named) == (policy.skills > 1)  # a single one is constant
    fed = {name: np.float32(value) for name, value in fed.items() if name in named}
    (actions,) = session.run(["action"], fed)
    np.testing.assert_allclose(actions, policy.act(**given), atol=1e-5)
    facts = json.loads(session.get_modelmeta().custom_metadata_map["music_tf"])
    assert facts["recipe"] == policy.recipe
