"""An episode before training finds what replay would pay wrongly."""

import dataclasses
import json
import re

import gymnasium
import numpy as np
import pytest

import music_tf
from music_tf.config.fields import with_fields
from music_tf.config.settings import EnvConfig, NormalizerConfig, ReplayConfig
from music_tf.config.world import World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.errors import EnvironmentFault, Finding, UsageError
from music_tf.training import checks, environment_trial, goal_checks, observation_checks
from music_tf.training.checks import TrialResult, try_environment
from music_tf.training.environment_trial import EnvironmentTrial
from tests.kit.arm import ARM, ARM_WITH_GOALS, DISC, TIP
from tests.kit.cases import cases
from tests.kit.counting import COUNTING
from tests.kit.layouts import LAYOUT
from tests.kit.points import STEPS, Point
from tests.kit.small import HER, MUSIC, OPTIONS

WRONG = {
    "Lists": "compute_reward reads from info what replay does not keep; kept of is_success, path: ",
    "Moves": "the goal moves within the episode",
    "Lies": "step pays something else than compute_reward",
    "Rescaled": "around the environment are Rescaled",
    "Together": "compute_reward is wrong for many goals at once",
    "KnowsGoal": "compute_reward reads from the environment itself what other episodes change",
    "Far": "have more digits than the single precision in which replay keeps them",
}
UNCHANGED = "the observation does not change with the goal"
NOT_SET = "cannot tell: no attribute `goal` sets the goal of an episode"
AGAINST_ITSELF = World(agent=(0, 1, 2), surrounding=(3, 4, 5))
KNOWN = "compute_reward knows the goal of the episode from info or from the environment; read of "


def found(check, env_id, settings=None):
    with EnvironmentTrial(env_id, settings) as trial:
        return check(trial)


def tried(env_id, config=HER, **changes):
    return try_environment(dataclasses.replace(config, env_id=env_id, **changes))


@pytest.mark.parametrize(("name", "cause"), WRONG.items())
def test_a_reward_that_replay_would_get_wrong_is_found_with_its_cause(points, name, cause):
    finding = found(goal_checks.reward, f"{name}-v0")
    assert cause in finding.detail
    assert not finding.ok


@cases(
    "name",
    *("Point", "Sparse", "Ends", "Items", "Later"),
    *("AfterTouch", "Pixels", "Flags", "Cells"),
)
def test_a_reward_that_replay_gets_right_passes(points, name):
    expected = Finding(f"replay computes what {STEPS} steps paid")
    assert found(goal_checks.reward, f"{name}-v0") == expected


def test_a_word_that_rewards_read_is_refused_and_two_numbers_that_differ_are_said(points):
    with pytest.raises(UsageError, match=r"info\['phase'\], which its rewards read: .*got str"):
        EnvironmentTrial("Chatty-v0")
    assert found(goal_checks.reward, "Moves-v0").detail.startswith(
        "step 11 paid -1.56666, and replay computes -1.36031 under the same goal (10 of 20 steps "
    )


@cases(
    "env_id",
    *("FetchPush-v4", "FetchReachDense-v4", "HandReach-v3", "HandManipulateBlockDense-v1"),
    *("PointMaze_UMaze-v3", "AntMaze_UMaze-v5", "HandManipulatePen-v1"),
)
def test_robots_pass(env_id):
    with EnvironmentTrial(env_id, EnvConfig(max_episode_steps=30)) as trial:
        assert goal_checks.reward(trial).detail == "replay computes what 30 steps paid"
        assert goal_checks.other_goal(trial).detail.startswith("replay computes what 30 steps")
        assert goal_checks.goal_apart(trial) == Finding(UNCHANGED)
        assert goal_checks.digits(trial).ok


@cases(("name", "fine"), ("FineFarAway", False), ("Far", False), ("Point", True), ("Resting", True))
def test_goals_that_single_precision_would_move_are_refused_with_their_cure(points, name, fine):
    assert found(goal_checks.digits, f"{name}-v0").ok == fine
    if fine:
        return
    with pytest.raises(EnvironmentFault, match=r"(?s)goals such as \(.*cure: .*subtract a const"):
        tried(f"{name}-v0")


class Rarely(Point):  # pays something else in one of two hundred steps
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward - (self.steps == 7), *rest


def registered(monkeypatch, kind, steps=STEPS):
    name = f"{kind.__name__}-v0"
    spec = gymnasium.envs.registration.EnvSpec(name, kind, max_episode_steps=steps)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


def test_what_differs_in_few_steps_is_told_and_refuses_nothing(monkeypatch):
    (text,) = tried(registered(monkeypatch, Rarely, 200)).warnings
    assert text.startswith("Rarely-v0: step 7 paid ")
    assert "(1 of 200 steps differ)" in text


@cases(
    ("config", "env_id"),
    *((MUSIC, "Lies-v0"), (dataclasses.replace(HER, goals="zero"), "Lies-v0")),
    (HER, "Pendulum-v1"),
    ids=["no task", "zero goals", "no goals"],
)
def test_nothing_is_compared_where_replay_recomputes_nothing(points, config, env_id):
    assert tried(env_id, config) == TrialResult()


OTHER_GOAL = {
    **dict.fromkeys(("Point", "Sparse", "Later", "Pixels"), "replay computes what 20 steps"),
    "ShowsHidden": "cannot tell: no attribute `goal`",
    "Lies": "cannot tell: rewards under the own goal differ already",
    "PaysElsewhere": "cannot tell: steps pay for another goal than the attribute `goal`",
}


@cases(
    ("check", "env_id", "says"),
    (goal_checks.goal_apart, "Shows-v0", "columns 0, 1 of the observation change with the goal"),
    (goal_checks.goal_apart, "ShowsHidden-v0", NOT_SET),
    (goal_checks.goal_apart, "Rescaled-v0", NOT_SET),
    (goal_checks.goal_apart, "Point-v0", UNCHANGED),
    (goal_checks.goal_apart, "music_tf/PointPush-v0", UNCHANGED),
    *((goal_checks.other_goal, f"{name}-v0", says) for name, says in OTHER_GOAL.items()),
)
def test_checks_that_set_goals_say_what_they_see_or_that_they_cannot(points, check, env_id, says):
    finding = found(check, env_id)
    assert finding.detail.startswith(says)
    assert bool(finding.cure) == says.startswith("columns")


@cases(
    ("env_id", "changes", "says"),
    ("ShowsHidden-v0", {}, "no attribute `goal` sets the goal of an episode, so nothing can tell"),
    ("ShowsHidden-v0", {"replay": ReplayConfig()}, ""),
    ("EndsSilently-v0", {}, "episodes end at their goal"),
    ("EndsSilently-v0", {"replay": ReplayConfig()}, ""),
    ("EndsSilently-v0", {"env": EnvConfig(success_ends=False)}, ""),
    ("NoSuccess-v0", {}, "info has no is_success"),
    *((env_id, {}, "") for env_id in ("FetchReach-v4", "music_tf/PointPush-v0")),
    *((f"{name}-v0", {}, "") for name in ("Ends", "FallsLater", "Point", "SaysSuccess", "Sparse")),
)
def test_hindsight_warns_of_what_it_cannot_know(points, env_id, changes, says):
    warnings = tried(env_id, **changes).warnings
    assert [text.startswith(f"{env_id}: {says}") for text in warnings] == [True] * bool(says)


def test_an_id_that_is_known_needs_no_goal_that_can_be_set(monkeypatch):
    monkeypatch.setattr(environment_trial, "show_goal", lambda unwrapped, goal: None)
    with EnvironmentTrial("music_tf/PointPush-v0") as trial:
        assert goal_checks.goal_apart(trial).detail.startswith("cannot tell: no attribute `goal`")
        assert not goal_checks.goal_set(trial).cure


def test_a_goal_in_the_observation_cannot_be_found_without_repeatable_episodes(points, monkeypatch):
    random, plain = np.random.default_rng(0), points["Point-v0"].seen
    noisy = lambda self: plain(self) | {"observation": random.uniform(size=2)}  # noqa: E731
    monkeypatch.setattr(points["Point-v0"], "seen", noisy)
    expected = Finding("cannot tell: it does not repeat itself under one seed")
    assert found(goal_checks.goal_apart, "Point-v0") == expected


def test_such_an_observation_is_refused_in_hindsight_alone(points):
    assert tried("Shows-v0", replay=ReplayConfig(relabel_k=0.0)) == TrialResult()
    with pytest.raises(EnvironmentFault, match="columns 0, 1 of the observation change"):
        tried("Shows-v0")


@cases(
    ("env_id", "kwargs", "says"),
    ("Onwards-v0", "{}", "at step 2 of an episode that meets it"),
    ("PointMaze_UMaze-v3", '{"reset_target": true}', "at step 2 of an episode that meets it"),
    ("Moves-v0", "{}", "at step 11 of an episode: replay pays all steps"),
    ("MovesUnpaid-v0", "{}", "at step 11 of an episode: replay pays all steps"),
)
def test_a_goal_that_moves_is_refused(points, env_id, kwargs, says):
    with pytest.raises(EnvironmentFault, match=f"goal moves {says}"):
        tried(env_id, env=EnvConfig(kwargs=kwargs))


@cases(
    ("config", "env_id"),
    *((HER, "Point-v0"), (HER, COUNTING), (MUSIC, "Point-v0")),
    (dataclasses.replace(HER, goals="zero"), "Point-v0"),
    ids=["goals", "no goals", "no task", "zero goals"],
)
def test_clipped_inputs_are_reported_in_any_run_of_an_environment_that_is_not_known(
    points, config, env_id
):
    (text,) = tried(env_id, config, normalizer=NormalizerConfig(input_clip=0.5)).warnings
    assert re.search(r"columns [01, ]+ of the observation reach .*see them clipped at 0\.5", text)
    assert tried(env_id, config) == TrialResult()


class FarAway(Point):  # observes columns with these offsets, and near goals
    def __init__(self):
        super().__init__()
        box = gymnasium.spaces.Box(-np.inf, np.inf, self.offsets.shape, np.float64)
        self.observation_space["observation"] = box

    def seen(self):
        columns = np.append(self.place, 0.0)[: len(self.offsets)] + self.offsets
        return super().seen() | {"observation": columns}


@cases(
    ("offsets", "clip", "told"),
    ([5e6, 0.0], 200.0, "columns 0 of the observation .* in steps of 0.5"),
    ([5e6, 0.0], 1e9, "columns 0 of the observation .* in steps of 0.5"),
    ([0.0, 0.0, 5e6], 1e9, "columns 2 of the observation .* in steps of 0.5"),
    ([0.0, 2e3], 200.0, "columns 1 of the observation .* clipped at 200"),
    ([0.0, 2e3], 1e9, ""),
)
def test_a_larger_clip_is_no_cure_for_motion_that_single_precision_loses(
    monkeypatch, offsets, clip, told
):
    monkeypatch.setattr(FarAway, "offsets", np.array(offsets), raising=False)
    far_away, normalizer = registered(monkeypatch, FarAway), NormalizerConfig(input_clip=clip)
    with EnvironmentTrial(far_away, normalizer=normalizer) as trial:
        finding = observation_checks.inputs(trial)
    assert re.search(told, finding.detail)
    assert ("input-clip" in finding.cure) == ("clipped" in told)
    assert (finding.warning, bool(finding.cure)) == (bool(told), bool(told))


def test_no_environment_is_made_to_look_for_clipped_inputs_of_a_known_one(monkeypatch):
    monkeypatch.setattr(checks, "EnvironmentTrial", lambda *_: pytest.fail("was made"))
    for config in (MUSIC, dataclasses.replace(MUSIC, env_id="FetchPush-v4", goals="zero")):
        assert try_environment(config) == TrialResult()


@cases(
    ("name", "pays", "cause"),
    ("KnowsHit", "pays 0, and replay computes -1 (", f"{KNOWN}info: hit"),
    ("Progress", "pays 0.0278106, and replay computes 1.2", f"{KNOWN}info: before"),
)
def test_a_reward_that_is_right_under_its_own_goal_alone_is_refused(points, name, pays, cause):
    assert found(goal_checks.reward, f"{name}-v0").ok
    with pytest.raises(EnvironmentFault) as refusal:
        tried(f"{name}-v0")
    assert f"under another goal {pays}" in str(refusal.value)
    assert cause in str(refusal.value)


@cases(
    ("name", "says"),
    ("EndsUnsaid", "ends, and compute_terminated says that it does not end"),
    ("SaysEnds", "goes on, and compute_terminated says that it does end"),
)
def test_an_end_that_compute_terminated_denies_is_told(points, name, says):
    (text,) = tried(f"{name}-v0").warnings
    assert f"step 1 of an episode that meets its goal {says}" in text
    assert not tried(f"{name}-v0", env=EnvConfig(success_ends=False)).warnings


def test_what_was_found_counts_though_goals_elsewhere_break_the_reward(points):
    with pytest.raises(EnvironmentFault, match="step pays something else than compute_reward"):
        tried("MappedLies-v0")
    assert found(EnvironmentTrial.reward_bounds, "Mapped-v0") == (-1.0, 0.0)


class Drawing(Point):  # draws from streams that all of numpy and Python share
    def reset(self, **options):
        super().reset(**options)
        self.place = np.random.uniform(-1, 1, 2)  # noqa: NPY002
        return self.seen(), {}


def test_the_random_streams_of_a_process_stay_as_they_were(monkeypatch):
    drawing = registered(monkeypatch, Drawing)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert tried(drawing) == TrialResult()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_what_breaks_or_cannot_be_made_is_left_to_training(points, monkeypatch):
    monkeypatch.setattr(points["Point-v0"], "step", lambda *_: 1 / 0)
    assert tried("Point-v0") == TrialResult()
    monkeypatch.setattr(points["Point-v0"], "__init__", lambda self: 1 / 0)
    assert tried("Point-v0") == TrialResult()


def test_a_long_episode_is_cut(points, monkeypatch):
    monkeypatch.setattr(environment_trial, "LONGEST", 7)
    assert found(goal_checks.reward, "Point-v0").detail == "replay computes what 7 steps paid"


@cases(
    ("env_id", "bounds"),
    ("Sparse-v0", (-1.0, 0.0)),
    ("Ends-v0", (0.0, 1.0)),
    ("Point-v0", None),  # a distance
    ("Resting-v0", None),  # a distance that random actions never change
    ("AfterTouch-v0", None),
    ("FetchReach-v4", None),  # known by its id
)
def test_rewards_of_two_values_show_their_bounds(points, env_id, bounds):
    assert found(EnvironmentTrial.reward_bounds, env_id) == bounds


def test_bounds_that_are_no_whole_numbers_hold_in_both_precisions(points, monkeypatch):
    def compute_reward(self, achieved, desired, info):
        return np.where(np.linalg.norm(achieved - desired, axis=-1) < 0.3, 1 / 3, -0.1)

    monkeypatch.setattr(points["Sparse-v0"], "compute_reward", compute_reward)
    low, high = found(EnvironmentTrial.reward_bounds, "Sparse-v0")
    assert low <= min(-0.1, np.float32(-0.1))
    assert high >= max(1 / 3, np.float32(1 / 3))
    assert (low, high) == pytest.approx((-0.1, 1 / 3), abs=1e-6)


@pytest.mark.thorough
def test_bounds_that_were_measured_are_stored_with_a_run(points, tmp_path):
    options = {**OPTIONS, "env_id": "tests.kit.points:Sparse-v0", "epochs": 1}
    run = music_tf.train("ddpg_her", run_dir=tmp_path / "run", **options)
    stored = json.loads((run.path / "config.json").read_text())["config"]
    assert stored["world"]["reward"] == [-1.0, 0.0]
    assert len(run.resume(epochs=2).metrics["time/epoch"]) == 2


@cases(
    ("name", "says"),
    ("Burns", "step 3: RuntimeError: the motor burns"),
    ("PaysNone", "step 1: reward: expected a number, got None"),
)
def test_where_bounds_cannot_be_found_the_fault_is_said_and_not_the_bounds(points, name, says):
    config = dataclasses.replace(HER, env_id=f"{name}-v0")
    assert try_environment(config) == TrialResult()  # needs no bounds, and training says it
    with pytest.raises(EnvironmentFault, match=says):
        try_environment(with_fields(config, {"agent.return_clip": "auto"}))


def test_a_reward_beyond_its_bounds_ends_the_run(points):
    envs = LockstepEnvs("Point-v0", 1, world=World(reward=(-1.0, 0.0)))
    assert envs.info.reward_bounds == (-1.0, 0.0)
    goals = np.zeros((2, 2), np.float32)
    assert envs.goal_reward(goals, goals).tolist() == [0.0, 0.0]
    with pytest.raises(EnvironmentFault, match=r"reward -2.82843 lies outside -1..0.*\n.*world"):
        envs.goal_reward(goals, goals + 2.0)
    envs.reset([0], [0], goals[:1] + 2.0)
    with pytest.raises(EnvironmentFault, match=r"lies outside -1\.\.0"):
        envs.step(np.zeros((1, 2)), [0])


@cases(
    ("config", "env_id", "world", "share"),
    (MUSIC, ARM, AGAINST_ITSELF, "100%"),
    (MUSIC, ARM, World(agent=TIP, surrounding=DISC), ""),
    (MUSIC, "PointMaze_UMaze-v3", World(agent=(0, 1), surrounding=(2, 3)), "100%"),
    (MUSIC, "music_tf/PointPush-v0", World(), ""),
    (HER, ARM_WITH_GOALS, AGAINST_ITSELF, ""),
    ids=["arm against arm", "arm and disc", "own velocities", "known", "no reward uses them"],
)
def test_surroundings_that_always_move_are_questioned(config, env_id, world, share):
    warnings = tried(env_id, config, world=world).warnings
    assert len(warnings) == bool(share)
    for text in warnings:
        assert f"move in {share} of random steps; is that split right?" in text


def test_a_robot_of_which_no_action_moves_anything_is_refused():
    groups = EnvConfig(kwargs=json.dumps({"groups": ["goal", "disc", "point"]}))
    world = World(agent=(0, 1), surrounding=(2, 3))
    still = dataclasses.replace(MUSIC, env_id=LAYOUT, env=groups, world=world)
    with pytest.raises(EnvironmentFault, match=rf"(?s)actions move, got 0, 1,.*check-env {LAYOUT}"):
        try_environment(still)
    robot = dataclasses.replace(still, world=World(agent=(4, 5), surrounding=(2, 3)))
    (text,) = try_environment(robot).warnings  # which is true of this environment
    assert "is that a limit of time?" in text
