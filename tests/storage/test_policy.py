import copy
import dataclasses

import numpy as np
import pytest

import music_tf
from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.errors import UsageError
from music_tf.networks.acting import SnapshotPolicy
from music_tf.storage import checkpoint
from music_tf.storage.checkpoint import discard
from music_tf.storage.loading import load_policy
from music_tf.storage.run_directory import link_latest
from music_tf.types import Reach
from tests.kit.cases import cases
from tests.kit.saved_run import save_checkpoint, save_run, write_config
from tests.kit.started import python

OBSERVATION = np.linspace(-1.0, 1.0, 8)
GOAL = np.array([0.3, -0.2, 0.0])


def saved(path, recipe="ddpg", **changes):  # a run whose normalisers have seen something
    trainer = save_run(path, recipe, **changes)
    generator = np.random.default_rng(0)
    trainer.inputs.observations.update(generator.normal(1, 2, (1, 9, 8)).astype(np.float32), 1)
    goals = generator.normal(-1, 3, (1, 9, len(trainer.inputs.now.goal.mean)))
    trainer.inputs.goals.update(goals.astype(np.float32), 1)
    save_checkpoint(path, trainer, 2)
    return trainer


@pytest.mark.parametrize("recipe", ["ddpg_her", "ddpg_rher", "sac"])
def test_it_acts_to_the_bit_as_the_run_does(tmp_path, recipe):
    trainer = saved(tmp_path, recipe, skills=3)
    generator = np.random.default_rng(1)
    observation = generator.uniform(-1, 1, (5, 8)).astype(np.float32)
    goal = generator.uniform(-1, 1, (5, 3)).astype(np.float32)
    skill = np.array([0, 1, 2, 0, 1])
    noise = generator.standard_normal((5, 3)).astype(np.float32)
    given = observation, goal, np.eye(3, dtype=np.float32)[skill], noise
    expected = trainer.policy()(*given)
    policy = music_tf.load_policy(tmp_path)
    np.testing.assert_array_equal(SnapshotPolicy(policy.snapshot)(*given), expected)
    drawing = SnapshotPolicy(trainer.snapshot(), sample=True, rows=2)
    found = SnapshotPolicy(policy.snapshot, sample=True, rows=2)(*given)
    np.testing.assert_array_equal(found, drawing(*given))
    np.testing.assert_array_equal(policy.act(observation, goal, skill), expected)
    assert expected.std(axis=0).min() > 0.01
    assert (policy.epoch, policy.skills, policy.env_id) == (2, 3, "music_tf/PointPush-v0")
    assert (policy.observation_dim, policy.goal_dim, policy.action_dim) == (8, 3, 3)
    if recipe == "ddpg_rher":  # under the task's goal no place of the hand counts
        wide = np.hstack([goal, np.zeros([5, 3], np.float32)])
        np.testing.assert_array_equal(trainer.policy()(observation, wide, *given[2:]), expected)


def test_columns_of_a_file_lie_within_an_observation(tmp_path, monkeypatch):
    monkeypatch.setattr(Reach, "columns", np.full([2, 3], 8.0, np.float32))
    saved(tmp_path, "ddpg_rher")
    with pytest.raises(UsageError, match="reach: expected columns of an observation, which has 8"):
        load_policy(tmp_path)


@pytest.fixture(scope="module")
def of_goals(tmp_path_factory):
    path = tmp_path_factory.mktemp("goals")
    saved(path)
    return load_policy(path)


def test_its_text_says_what_acting_takes(of_goals, of_two_skills, of_vectors):
    where = "<ddpg on music_tf/PointPush-v0, epoch"
    takes = "observation[8], goal[3]"
    assert repr(of_goals) == f"{where} 2: {takes} -> action[3]>"
    assert repr(of_two_skills) == f"{where} 1: {takes}, skill of 2 -> action[3]>"
    assert repr(of_vectors[0]) == f"{where} 1: {takes}, skill[2] (sphere) -> action[3]>"
    adapts = "<sac_pearl on music_tf/PointRobot-v0, epoch 10: observation[2] -> action[2]>"
    assert repr(load_policy("point")) == adapts


def test_one_observation_gives_one_action_and_a_batch_one_for_each(of_goals):
    one, both = of_goals.act(OBSERVATION, GOAL), of_goals.act([OBSERVATION, -OBSERVATION], GOAL)
    assert (one.shape, both.shape) == ((3,), (2, 3))
    each = of_goals.act([OBSERVATION, -OBSERVATION], [GOAL, GOAL])
    for batch in (both, each):
        np.testing.assert_allclose(batch[0], one, atol=1e-6)
    assert np.abs(of_goals.act(OBSERVATION, -GOAL) - one).max() > 1e-3
    np.testing.assert_array_equal(of_goals.act(OBSERVATION, GOAL), one)


def test_goals_come_with_the_observation_where_training_had_them(of_goals):
    act, given = of_goals.act, {"observation": OBSERVATION, "desired_goal": GOAL}
    np.testing.assert_array_equal(act(given), act(OBSERVATION, GOAL))
    np.testing.assert_array_equal(act(given, -GOAL), act(OBSERVATION, -GOAL))
    for incomplete in (OBSERVATION, {"observation": OBSERVATION}):
        with pytest.raises(ValueError, match=r"goal: ddpg was trained on goals; give goal= of"):
            act(incomplete)


def test_a_run_without_a_task_acts_under_zero_goals_whatever_the_environment_wants(tmp_path):
    saved(tmp_path, "ddpg_music")
    policy = load_policy(tmp_path)
    expected = policy.act(OBSERVATION, np.zeros(3))
    given = {"observation": OBSERVATION, "desired_goal": GOAL}
    for observation in (OBSERVATION, given):
        np.testing.assert_array_equal(policy.act(observation), expected)
    with pytest.raises(ValueError, match=r"goal: ddpg_music was trained without goals and .*leave"):
        policy.act(given, GOAL)
    with pytest.raises(ValueError, match=r"reach: ddpg_music .* with phi in its --parts"):
        policy.act(OBSERVATION, reach=[0.0, 0.0])


def test_a_place_to_reach_chooses_the_condition_and_the_policy_sees_zero_goals(tmp_path):
    trainer = saved(tmp_path, "sac_metra")
    policy = load_policy(tmp_path)
    leads = policy.embedding
    assert leads.columns == (3, 4)
    observation = np.random.default_rng(1).uniform(-1, 1, (5, 8)).astype(np.float32)
    place = np.float32([0.5, -0.5])
    here, there = observation[:, 3:5], np.broadcast_to(place, (5, 2))
    zeros = np.zeros([5, 3], np.float32)
    expected = trainer.policy()(observation, zeros, leads.leading(here, there), zeros)
    np.testing.assert_array_equal(policy.act(observation, reach=place), expected)
    given = {"observation": observation, "desired_goal": np.tile(GOAL, (5, 1))}
    np.testing.assert_array_equal(policy.act(given, reach=place), expected)
    with pytest.raises(ValueError, match=r"goal: sac_metra .*or reach="):
        policy.act(observation, GOAL)
    with pytest.raises(ValueError, match="reach: the place determines"):
        policy.act(observation, skill=[1.0, 0.0], reach=place)
    with pytest.raises(ValueError, match=r"reach: expected numbers of shape \[2\] or \[B, 2\]"):
        policy.act(observation, reach=[0.5, -0.5, 0.0])


def test_a_skill_is_chosen_for_all_or_for_each_or_is_the_pinned_one(tmp_path):
    saved(tmp_path / "free", skills=2)
    policy = load_policy(tmp_path / "free")
    batch = [OBSERVATION, OBSERVATION]
    both = policy.act(batch, GOAL, [0, 1])
    assert np.abs(both[0] - both[1]).max() > 1e-3
    np.testing.assert_array_equal(policy.act(batch, GOAL, 1)[0], both[1])
    saved(tmp_path / "pinned", skills=3, pinned_skill=2)
    pinned = load_policy(tmp_path / "pinned")
    chosen = pinned.act(OBSERVATION, GOAL)
    np.testing.assert_array_equal(chosen, pinned.act(OBSERVATION, GOAL, 2))
    assert np.abs(chosen - pinned.act(OBSERVATION, GOAL, 0)).max() > 1e-3


@pytest.fixture(scope="module")
def of_two_skills(tmp_path_factory):
    path = tmp_path_factory.mktemp("skills")
    save_run(path, skills=2)
    return load_policy(path)


@cases(
    ("observation", "goal", "skill", "text"),
    (np.zeros(7), GOAL, 0, r"observation: expected numbers of shape \[8\] or .*, got \[7\]"),
    (np.zeros((2, 2, 8)), GOAL, 0, r"got \[2, 2, 8\]"),
    ("state", GOAL, 0, "observation: .* got str"),
    (np.full(8, np.inf), GOAL, 0, "observation: expected finite numbers, got inf"),
    ({"state": np.zeros(8)}, GOAL, 0, r"expected 'observation' in \['state'\]"),
    (OBSERVATION, np.zeros(4), 0, r"goal: expected numbers of shape \[3\] or .*, got \[4\]"),
    (np.zeros((2, 8)), np.zeros((3, 3)), 0, r"each observation \[2, 8\], got \[3, 3\]"),
    (OBSERVATION, np.zeros((1, 3)), 0, r"goal: .* each observation \[8\], got \[1, 3\]"),
    (OBSERVATION, GOAL, None, r"skill: this run has 2, give one of 0\.\.1"),
    (OBSERVATION, GOAL, 2, r"skill: this run has 2, expected 0\.\.1, got 2"),
    (OBSERVATION, GOAL, 0.5, "skill: expected a whole number, or one for each"),
    (OBSERVATION, GOAL, [0, 1], r"for each observation \[8\], got \[0, 1\]"),
)
def test_what_does_not_fit_is_refused_by_name(of_two_skills, observation, goal, skill, text):
    with pytest.raises(ValueError, match=text):
        of_two_skills.act(observation, goal, skill)


def test_a_policy_can_be_copied_and_so_sent_to_another_process(of_two_skills):
    sent = copy.deepcopy(of_two_skills)
    for skill in range(2):
        given = OBSERVATION, GOAL, skill
        np.testing.assert_array_equal(sent.act(*given), of_two_skills.act(*given))


@pytest.fixture(scope="module")
def of_vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors")
    trainer = save_run(path, condition=ConditionConfig(kind="sphere", size=2))
    return load_policy(path), trainer.policy()


def test_a_continuous_condition_is_a_vector_for_all_or_for_each(of_vectors):
    policy, acting = of_vectors
    assert (policy.condition, policy.skills) == ("sphere", 2)
    batch, goals = np.float32([OBSERVATION, -OBSERVATION]), np.float32([GOAL, GOAL])
    skills = np.float32([[0.6, 0.8], [-1.0, 0.0]])
    expected = acting(batch, goals, skills, np.zeros([2, 3]))
    np.testing.assert_array_equal(policy.act(batch, GOAL, skills), expected)
    np.testing.assert_array_equal(policy.act(batch, GOAL, [0.6, 0.8])[0], expected[0])
    one = policy.act(OBSERVATION, GOAL, [0.6, 0.8])
    np.testing.assert_allclose(one, expected[0], atol=1e-6)
    assert np.abs(policy.act(OBSERVATION, GOAL, [-0.6, -0.8]) - one).max() > 1e-3


@cases(
    ("skill", "text"),
    (None, r"skill: ddpg has a sphere condition, expected skill= of shape \[2\]$"),
    ([5.0, 0.0], r"skill: expected vectors of length 1, got \[5.0, 0.0\]"),
    ([0.6, 0.8, 0.0], r"shape \[2\] or .*, got \[3\]"),
    ([[0.6, 0.8]] * 3, r"one for each observation \[8\], got \[3, 2\]"),
)
def test_a_condition_of_another_size_is_refused(of_vectors, skill, text):
    with pytest.raises(ValueError, match=text):
        of_vectors[0].act(OBSERVATION, GOAL, skill)


def test_loading_and_acting_need_neither_tensorflow_nor_a_simulator(tmp_path):
    save_run(tmp_path, "ddpg_music")
    code = (
        "import sys, music_tf\n"
        "light = set(sys.modules)\n"
        f"music_tf.load_policy({str(tmp_path)!r}).act([0.0] * 8)\n"
        "heavy = ('tensorflow', 'keras', 'mpi4py', 'gymnasium', 'mujoco', 'rich')\n"
        "print([name for name in heavy if name in sys.modules], 'numpy' in light)\n"
    )
    done = python(code)
    assert (done.stdout, done.stderr) == ("[] False\n", "")


def test_a_run_that_removes_what_is_being_read_is_read_again(tmp_path, monkeypatch):
    trainer = save_run(tmp_path)
    read = checkpoint.gate.read_arrays

    def overtaken(folder, *given):
        if folder.name == "epoch_000001":
            save_checkpoint(tmp_path, trainer, 5)
            discard(folder)
        return read(folder, *given)

    monkeypatch.setattr(checkpoint.gate, "read_arrays", overtaken)
    assert load_policy(tmp_path).epoch == 5


def test_the_latest_run_is_found_by_its_name_and_is_not_touched(tmp_path):
    run = tmp_path / "runs/Task/run"
    saved(run)
    link_latest(run)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    assert load_policy("latest").epoch == 2
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == before


@cases(
    ("changes", "text"),
    ({"agent.hidden_sizes": (16, 8)}, r"kernel: expected float32 \(12, 16\), found .*\(12, 8\)"),
    ({"agent.hidden_sizes": (8, 8, 8)}, "actor/hidden_2/kernel: missing"),
    ({"agent.hidden_sizes": (8,)}, "actor/hidden_1/bias: no such weight"),
    ({"skills": 4}, r"hidden_0/kernel: expected float32 \(15, 8\)"),
)
def test_weights_that_do_not_fit_the_configuration_are_named(tmp_path, changes, text):
    write_config(tmp_path, with_fields(save_run(tmp_path).config, changes))
    with pytest.raises(UsageError, match=text):
        load_policy(tmp_path)


def test_an_environment_is_typed_again_if_it_is_the_users_own_and_no_other_is_taken(tmp_path):
    config = save_run(tmp_path).config
    with pytest.raises(UsageError, match=r"^env_id: the run was trained on music_tf/PointPush-v0"):
        load_policy(tmp_path, env_id="Hopper-v5")
    assert load_policy(tmp_path, env_id="music_tf/PointPush-v0").skills == 1
    write_config(tmp_path, dataclasses.replace(config, env_id="mine:Task-v0"))
    with pytest.raises(UsageError, match="--env-id mine:Task-v0"):
        load_policy(tmp_path)
    assert load_policy(tmp_path, env_id="mine:Task-v0").env_id == "mine:Task-v0"
