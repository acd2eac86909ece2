import dataclasses
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.making import make_environment
from music_tf.envs.member import can_set_goal
from music_tf.envs.registry import lookup
from music_tf.envs.specification import describe
from music_tf.errors import EnvironmentFault, NumbersFault, UsageError
from music_tf.types import SplitSpec
from tests.kit.cases import cases
from tests.kit.counting import AIMING, COUNTING, FORGETFUL, HIDING
from tests.kit.odd import ODD
from tests.kit.points import STEPS

MOVE = np.array([[0.5, -0.25]], np.float32)


def actions(seed, steps, size):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, 1, size)).astype(np.float32)


def play(envs, seed, steps=25):
    states = [envs.reset([0], [seed])]
    for action in actions(seed, steps, envs.spec.action_dim):
        taken = envs.step(action, [0])
        assert taken.faults == [None]
        states.append(taken)
    return [array for state in states for array in state[:3]]


@cases(
    "env_id",
    "FetchPush-v4",
    "FetchPickAndPlace-v4",
    "HandManipulateBlock-v1",
    "PointMaze_UMaze-v3",
    "AntMaze_UMaze-v5",
    "music_tf/PointPush-v0",
)
def test_a_seed_fixes_the_episode_bit_for_bit_whatever_came_before(env_id):
    envs = LockstepEnvs(env_id, 1)
    first = play(envs, seed=5)
    play(envs, seed=6)
    data = getattr(envs.environment.unwrapped, "data", SimpleNamespace(xfrc_applied=np.zeros(1)))
    data.xfrc_applied[:] = 0.1  # a force that is left behind
    np.testing.assert_equal(play(envs, seed=5), first)
    np.testing.assert_equal(play(LockstepEnvs(env_id, 1), seed=5), first)


def test_what_was_placed_when_a_simulator_was_made_stays_there(placed):
    alone = gymnasium.make(placed)
    reset = alone.reset(seed=5)[0].astype(np.float32)
    stepped = alone.step(np.full(1, 0.5, np.float32))[0].astype(np.float32)
    world = World(extras=("cost",))  # for which the first environment is stepped
    for envs in (LockstepEnvs(placed, 2), LockstepEnvs(placed, 2, world=world)):
        for _ in range(2):
            np.testing.assert_array_equal(envs.reset([0, 1], [5, 5]).observation, [reset] * 2)
            taken = envs.step(np.full((2, 1), 0.5, np.float32), [0, 1])
            np.testing.assert_array_equal(taken.observation, [stepped] * 2)
    assert reset.tolist()[1:] == [0.25, 0.0, 7.0]


def test_spec_says_sizes_split_and_length_and_a_split_beyond_them_is_refused():
    spec = LockstepEnvs("FetchPush-v4", 1).spec
    assert (spec.observation_dim, spec.goal_dim, spec.action_dim) == (25, 3, 4)
    assert spec.max_episode_steps == 50
    assert spec.split == SplitSpec(agent=(0, 1, 2), surrounding=(3, 4, 5))
    environment = make_environment("FetchReach-v4")
    info = lookup("FetchPush-v4")  # whose table has a block, and so columns up to 5
    assert describe("FetchReach-v4", environment, info).split is info.split
    beyond = dataclasses.replace(info, split=SplitSpec(agent=(0,), surrounding=(10,)))
    with pytest.raises(UsageError, match=r"expected components in 0..9, got \(10,\)"):
        describe("FetchReach-v4", environment, beyond)


def test_rows_follow_the_given_indices(odd):
    envs = LockstepEnvs(ODD, 3)
    first = envs.reset([2, 0, 1], [12, 10, 11])
    alone = LockstepEnvs(ODD, 1)
    np.testing.assert_array_equal(alone.reset([0], [12]).observation, first.observation[:1])
    taken = envs.step(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32), [1, 2])
    np.testing.assert_allclose(
        taken.observation, [first.observation[2] + [1, 0], first.observation[0] + [0, 1]], rtol=1e-6
    )


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "music_tf/PointPush-v0"])
def test_goals_given_are_observed_and_rewarded(env_id):
    envs = LockstepEnvs(env_id, 1)
    goal = envs.reset([0], [0]).achieved_goal
    np.testing.assert_array_equal(envs.reset([0], [0], goal).desired_goal, goal)
    taken = envs.step(np.zeros((1, envs.spec.action_dim), np.float32), [0])
    np.testing.assert_array_equal(taken.desired_goal, goal)
    assert (taken.reward[0], taken.success[0]) == (0.0, True)
    assert envs.reset([0], [0]).desired_goal.tolist() != goal.tolist()


@cases(("success_ends", "terminated"), (None, False), (False, False), (True, True))
def test_a_goal_that_cannot_be_set_is_hidden_and_so_is_its_success(success_ends, terminated):
    envs = LockstepEnvs(HIDING, 1, EnvConfig(success_ends=success_ends))
    first = envs.reset([0], [0], np.zeros((1, 1), np.float32))
    steps = envs.step(np.ones((1, 1), np.float32), [0])
    assert first.desired_goal.tolist() == steps.desired_goal.tolist() == [[0.0]]
    assert steps.terminated.tolist() == [terminated]
    own = LockstepEnvs(HIDING, 1)
    assert own.reset([0], [0]).desired_goal.tolist() == [[7.0]]
    assert own.step(np.ones((1, 1), np.float32), [0]).terminated.tolist() == [True]


@pytest.mark.parametrize("env_id", ["ReadsGoal-v0", "AsksGoal-v0"])
def test_a_goal_that_is_read_alone_or_asked_for_is_hidden_and_stays(points, env_id):
    envs = LockstepEnvs(env_id, 1)
    own = envs.reset([0], [0]).desired_goal
    assert envs.reset([0], [0], np.zeros((1, 2), np.float32)).desired_goal.tolist() == [[0.0, 0.0]]
    taken = envs.step(np.ones((1, 2), np.float32), [0])
    assert taken.desired_goal.tolist() == [[0.0, 0.0]]
    apart = np.linalg.norm(taken.achieved_goal - own)
    assert taken.reward[0] == pytest.approx(-apart)  # of its own goal, which is not replaced
    assert not can_set_goal(envs.environment.unwrapped)


def test_zero_goals_leave_an_environment_without_goals_as_it_is():
    envs = LockstepEnvs(AIMING, 1)
    for goals in (None, np.zeros((1, 0), np.float32)):
        first = envs.reset([0], [0], goals).observation
        taken = envs.step(np.ones((1, 1), np.float32), [0])
        assert (first.tolist(), taken.observation.tolist()) == ([[0.0, 1.0]], [[1.0, 1.0]])
        assert (taken.terminated.tolist(), taken.success.tolist()) == ([True], [True])


def test_an_environment_that_does_not_repeat_itself_can_be_made_anew_for_each_episode():
    def first(settings):
        envs = LockstepEnvs(FORGETFUL, 1, settings)
        return [envs.reset([0], [3]).observation[0, 0].item() for _ in range(3)]

    assert (first(EnvConfig()), first(EnvConfig(remake=True))) == ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0])


def test_length_and_arguments_of_an_environment_are_settings():
    envs = LockstepEnvs(COUNTING, 1, EnvConfig(max_episode_steps=3, kwargs='{"size": 5}'))
    assert (envs.spec.observation_dim, envs.spec.goal_dim, envs.spec.max_episode_steps) == (5, 0, 3)
    with pytest.raises(UsageError, match=r"env.kwargs: .* does not take .*sizes"):
        LockstepEnvs(COUNTING, 1, EnvConfig(kwargs='{"sizes": 5}'))
    with pytest.raises(UsageError, match=r"env.kwargs: expected .* no render_mode, got"):
        EnvConfig(kwargs='{"render_mode": "human"}')


@cases(("env_id", "steps"), ("FetchReach-v4", 50), ("music_tf/PointPush-v0", 30))
def test_time_is_over_with_the_last_step_and_not_before(env_id, steps):
    envs = LockstepEnvs(env_id, 1)
    for seed in (0, 1):
        envs.reset([0], [seed])
        ends = [envs.step(action, [0]) for action in actions(0, steps, envs.spec.action_dim)]
        assert [bool(end.truncated[0]) for end in ends] == [False] * (steps - 1) + [True]
        assert not any(end.terminated[0] for end in ends)


def test_actions_are_clipped_and_mapped_to_the_bounds(odd):
    odd.low, odd.high = 0.0, 10.0
    envs = LockstepEnvs(ODD, 1)
    start = envs.reset([0], [0]).observation[0]
    low = envs.step(np.array([[-1.0, 0.0]], np.float32), [0]).observation[0]
    np.testing.assert_allclose(low - start, [0.0, 5.0], atol=1e-6)
    high = envs.step(np.array([[1.0, 7.0]], np.float32), [0]).observation[0]
    np.testing.assert_allclose(high - low, [10.0, 10.0], atol=1e-5)


def test_actions_that_are_not_finite_or_of_a_wrong_shape_are_refused():
    envs = LockstepEnvs("music_tf/PointReach-v0", 2)
    envs.reset([0, 1], [0, 1])
    with pytest.raises(NumbersFault, match=r"action\[1, 0\] is nan"):
        envs.step(np.array([[0.0, 0.0], [np.nan, 0.0]], np.float32), [0, 1])
    with pytest.raises(ValueError, match=r"expected shape \(2, 2\), got \(2, 3\)"):
        envs.step(np.zeros((2, 3), np.float32), [0, 1])


@cases(
    ("fault", "text"),
    ("exception", "RuntimeError: the motor burns"),
    ("nan", "observation[1]: expected a finite number, got nan"),
    ("shape", "achieved_goal: expected shape (2,), got shape (3,)"),
    ("missing", "desired_goal: expected shape (2,), got nothing"),
    ("huge", "achieved_goal[1]: expected a finite number, got 1e+39"),
    ("reward", "reward: expected a finite number, got inf"),
    ("huge reward", "reward: expected a finite number, got -1e+39"),
    ("huge sum", "reward: expected a number whose sum over 8 steps is finite, got 3e+38"),
    ("degree", "info['is_success']: expected True or False, as of distance < 0.05, got 0.3"),
)
def test_a_broken_environment_is_reported_and_leaves_the_others_alone(odd, fault, text):
    envs = LockstepEnvs(ODD, 2)
    envs.reset([0, 1], [0, 1])
    odd.at_step = 2
    both = np.concatenate([MOVE, MOVE])
    before = envs.step(both, [0, 1])
    envs._members[1].environment.unwrapped.fault = fault
    taken = envs.step(both, [0, 1])
    assert taken.faults[0] is None
    assert text in taken.faults[1]
    assert f"{ODD}, environment 1, step 2" in taken.faults[1]
    np.testing.assert_allclose(taken.observation[0], before.observation[0] + MOVE[0], rtol=1e-6)
    for after, last in zip(taken[:3], before[:3], strict=True):
        np.testing.assert_array_equal(after[1], last[1])
    assert taken.truncated.tolist() == [False, True]
    assert (taken.reward[1], envs.step(both, [0, 1]).faults[1]) == (0.0, taken.faults[1])


def test_a_broken_environment_is_built_anew_on_its_next_reset_only(odd, monkeypatch):
    monkeypatch.setattr(odd, "close", lambda self: 1 / 0)  # it cannot even be closed
    envs = LockstepEnvs(ODD, 2)
    envs.reset([0, 1], [0, 1])
    envs._members[1].environment.unwrapped.fault = "exception"
    for _ in range(3):
        taken = envs.step(np.concatenate([MOVE, MOVE]), [0, 1])
    assert taken.faults[1] is not None
    assert odd.built == 2
    envs.reset([0, 1], [2, 3])
    assert odd.built == 3
    assert envs.step(np.concatenate([MOVE, MOVE]), [0, 1]).faults == [None, None]


def test_the_first_fault_is_warned_of_and_all_are_logged(odd, caplog):
    caplog.set_level("INFO", "music_tf")
    odd.fault = "exception"
    envs = LockstepEnvs(ODD, 2)
    envs.reset([0, 1], [2, 3])
    for _ in range(4):
        envs.step(np.concatenate([MOVE, MOVE]), [0, 1])
    told = [record for record in caplog.records if record.exc_info is None]
    assert len(caplog.records) == 2 * len(told)  # each with its traceback
    assert [record.levelname for record in told] == ["WARNING", "INFO"]
    first, second = [record.getMessage() for record in told]
    assert f"{ODD}, environment 0, step 3: RuntimeError: the motor burns at odd.py:" in first
    assert f"{ODD}, environment 1, step 3: RuntimeError: the motor burns at odd.py:" in second


@cases(
    ("fault", "played", "kind", "says"),
    ("reset", False, EnvironmentFault, "RuntimeError: no reset"),
    ("ours", False, EnvironmentFault, "of the environment"),
    ("reset alone", False, UsageError, r".*reset must give \(observation, info\)"),
    ("reset alone", True, EnvironmentFault, r".*reset must give \(observation, info\)"),
)
def test_an_environment_that_never_resets_ends_the_run(odd, fault, played, kind, says):
    envs = LockstepEnvs(ODD, 1)
    if played:
        envs.reset([0], [6])
    odd.fault = fault
    with pytest.raises(kind, match=f"reset with seed 7 fails twice: {says}"):
        envs.reset([0], [7])
    assert odd.built == 2


def test_a_warning_of_the_simulator_is_a_fault_and_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs = LockstepEnvs("FetchPush-v4", 2)
    envs.reset([0, 1], [0, 1])
    envs._members[1].environment.unwrapped.data.qvel[0] = np.nan
    faults = envs.step(np.zeros((2, 4), np.float32), [0, 1]).faults
    assert faults[0] is None
    assert "FetchPush-v4, environment 1, step 1: MuJoCo warns: Nan, Inf or huge value" in faults[1]
    assert list(tmp_path.glob("MUJOCO*")) == []
    envs.reset([1], [1])
    assert envs.step(np.zeros((1, 4), np.float32), [1]).faults == [None]


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "HandManipulatePen-v1", "HandManipulateEgg-v1"])
def test_reward_of_goals_is_that_of_single_goals(env_id):
    envs = LockstepEnvs(env_id, 1)
    states = [envs.reset([0], [seed]) for seed in range(4)]
    achieved = np.concatenate([state.achieved_goal for state in states])
    desired = np.concatenate([achieved[:2], achieved[:2] + np.float32(0.3)])
    rewards = envs.goal_reward(achieved, desired)
    unwrapped = envs._members[0].environment.unwrapped
    single = [
        unwrapped.compute_reward(one.copy(), other.copy(), {})
        for one, other in zip(achieved, desired, strict=True)
    ]
    np.testing.assert_array_equal(rewards, single)
    assert (rewards.dtype, rewards[:2].tolist()) == (np.float32, [0.0, 0.0])
    assert -1.0 in rewards


@cases(
    ("compute", "says"),
    (lambda achieved, info: achieved.sum(), r"must give \(5,\) finite numbers, got shape \(\)"),
    (lambda achieved, info: achieved[:, 0] / 0, r"finite numbers, got non-finite"),
    (lambda achieved, info: info["x"], r"infos \{\} fails: KeyError: 'x'"),
    *((lambda achieved, info, no=no: [no] * 5, "finite numbers, got ") for no in (None, "far", 1j)),
)
def test_a_reward_is_refused_that(compute, says, odd, monkeypatch):
    envs = LockstepEnvs(ODD, 1)
    monkeypatch.setattr(odd, "compute_reward", lambda self, one, other, info: compute(one, info))
    goals = np.zeros((5, 2), np.float32)
    with pytest.raises(EnvironmentFault, match=says):
        envs.goal_reward(goals, goals)


def test_an_entry_of_info_that_comes_late_is_stored_for_the_rewards_that_read_it(points):
    envs = LockstepEnvs("Rare-v0", 1)
    envs.reset([0], [0])
    paid = []
    for _ in range(STEPS):
        taken = envs.step(np.ones((1, 2), np.float32), [0])
        paid.append(taken.reward[0])
        computed = envs.goal_reward(taken.achieved_goal, taken.desired_goal, taken.extras)
        np.testing.assert_allclose(computed, taken.reward, rtol=1e-6)
    assert paid[0] > -10.0 > paid[-1]


@pytest.mark.parametrize("bound", [np.inf, np.finfo(np.float32).max])
def test_unbounded_actions_and_endless_episodes_are_refused(odd, bound, monkeypatch):
    monkeypatch.setattr(odd, "high", bound)
    odd.low = -bound
    with pytest.raises(UsageError, match="finite bounds"):
        LockstepEnvs(ODD, 1)
    odd.low, odd.high = -1.0, 1.0
    spec = gymnasium.envs.registration.EnvSpec("Endless-v0", odd)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    with pytest.raises(UsageError, match="register it with max_episode_steps"):
        LockstepEnvs("Endless-v0", 1)
