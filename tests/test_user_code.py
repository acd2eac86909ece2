"""What code of the user's does to the arrays that it is given, and returns, spoils none of ours."""

import re

import numpy as np
import pytest

from music_tf.config.settings import ReplayConfig
from music_tf.config.world import DESCRIPTOR, World
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.member import BadObservation, number, succeeded
from music_tf.errors import EnvironmentFault
from music_tf.replay.buffer import ReplayBuffer, Shard
from music_tf.rollout import Conditions, play
from tests.kit.cases import cases, every
from tests.kit.liberties import Quits
from tests.kit.points import points
from tests.kit.small import BASE, EVERYTHING, trainer_of

__all__ = ["points"]
pytestmark = pytest.mark.usefixtures("points")
GAMMA = 0.98
EPISODES = 9


def made(name, world=None):
    return LockstepEnvs(f"{name}-v0", 1, world=world)


def act(observation, goal, skill, noise):
    return np.cos(37.0 * observation).astype(np.float32)


def episode(envs, seed=0):
    return play(envs, act, Conditions(np.array([seed]), None, np.ones((1, 1), np.float32)), None)


def replayed(name):
    """Transitions of some episodes, what had been stored of these, and what was drawn."""
    envs, config = made(name), ReplayConfig(relabel_k=4.0, batch_size=2000)
    shard = Shard(envs.spec, 1, config)
    for seed in range(EPISODES):
        shard.add(episode(envs, seed), np.random.default_rng(0))
    stored = {key: array[:EPISODES].copy() for key, array in shard.arrays.items()}
    replay = ReplayBuffer({0: shard}, config, envs.goal_reward, GAMMA, seed=0)
    picks = replay.pick(1, 0)
    batch = replay.transitions(picks)
    np.testing.assert_equal({key: rows[:EPISODES] for key, rows in shard.arrays.items()}, stored)
    return batch, stored, picks


@pytest.mark.parametrize("name", ["InPlace", "InPlaceWithInfo", "OwnArray", "Price"])
def test_replay_is_what_was_played_whatever_a_reward_does_to_what_it_is_given(name):
    batch, stored, (slot, time, goal) = replayed(name)
    own = goal < 0
    expected = np.where(
        own[..., None], stored["desired_goal"][slot], stored["achieved_goal"][slot, goal]
    )
    np.testing.assert_array_equal(batch.desired_goal, expected)
    np.testing.assert_allclose(batch.reward[own], stored["reward"][slot, time][own], atol=1e-6)
    for key, values in batch.next_extras.items():
        np.testing.assert_array_equal(values, stored[f"extras/{key}"][slot, time + 1])


def test_entries_of_info_with_names_of_ours_are_ignored():
    envs = made("Price", World(descriptor=twice))
    assert envs.spec.extras == {"music_tf/descriptor": 2, "discount": 1, "descriptor": 1}
    played = episode(envs)
    np.testing.assert_array_equal(played.extras[DESCRIPTOR], 2.0 * played.observation)
    np.testing.assert_array_equal(played.extras["descriptor"][0, 1:, 0], np.full(20, 0.25))
    batch, *_ = replayed("Price")
    assert np.unique(batch.discount) == np.float32(GAMMA)  # 0.49 where it was taken for ours


def twice(environment):
    return 2.0 * environment.place


def test_an_environment_may_scale_the_action_that_it_is_given():
    played = episode(made("ScalesAction"))
    np.testing.assert_array_equal(played.action[0], act(played.observation[0, :-1], 0, 0, 0))
    moved = np.diff(played.observation[0], axis=0)
    np.testing.assert_allclose(moved, 0.01 * played.action[0], atol=1e-6)


@cases(
    ("name", "action", "taken"),
    ("Strict", [-1.0, -1.0], [-0.1, 0.2]),
    ("Strict", [1.0, 1.0], [0.1, 0.7]),
    ("Strict", [0.5, 0.0], [0.05, 0.45]),
    ("StrictlyWhole", [1.0, -1.0], [3, 0]),
    ("StrictlyWhole", [0.4, 0.3], [1, 3]),  # 1.2 and 2.6 to the nearest
)
def test_an_action_never_leaves_its_space_by_a_rounding(name, action, taken):
    envs = made(name)
    envs.reset([0], [0])
    assert envs.step(np.float32([action]), [0]).faults == [None]
    found = envs._members[0].environment.unwrapped.taken
    np.testing.assert_allclose(found, taken, rtol=1e-6)
    assert found.dtype == np.asarray(taken).dtype


def test_an_environment_that_calls_sys_exit_is_a_fault(monkeypatch):
    envs, goals = made("Quits"), np.zeros((1, 2), np.float32)
    envs.reset([0], [0])
    (fault,) = envs.step(np.zeros((1, 2), np.float32), [0]).faults
    assert fault == "Quits-v0, environment 0, step 1: SystemExit: 0 at liberties.py:87 in step"
    monkeypatch.setattr(Quits, "where", "compute_reward")
    with pytest.raises(EnvironmentFault, match=r"compute_reward of .* SystemExit: 0 at lib"):
        envs.goal_reward(goals, goals)
    monkeypatch.setattr(Quits, "where", "reset")
    with pytest.raises(EnvironmentFault, match=r"fails twice: SystemExit: 0 at .*:92 in reset"):
        envs.reset([0], [1])


@every("reward", [None, "near", [1.0], 1j, np.ones(1)])
def test_a_reward_that_is_no_number_is_refused(reward):
    with pytest.raises(BadObservation, match="reward: expected a number, got "):
        number("reward", reward)
    assert number("reward", np.float32(0.5)) == 0.5


@every("value", [True, 0, 1.0, np.bool_(False), np.float32(1.0), np.array(1), np.array([0.0])])
def test_success_is_a_truth_value_in_any_form(value):
    assert succeeded({"is_success": value}) is bool(value)
    assert succeeded({"success": value}) is bool(value)
    assert succeeded({"is_success": value, "success": 0.5}) is bool(value)
    assert succeeded({}) is False


@every("value", [0.3, np.nan, -1, None, "yes", np.array([0.3]), np.ones(2)])
def test_a_degree_of_success_is_no_truth_value(value):
    says = re.escape(f"]: expected True or False, as of distance < 0.05, got {value!r}")
    for name in ("is_success", "success"):
        with pytest.raises(BadObservation, match=name + "'" + says):
            succeeded({name: value})


def test_a_run_says_what_of_an_observation_nothing_learns_from():
    trainer = trainer_of(BASE, env_id="Touches-v0")
    assert trainer.notices == [
        "Touches-v0 also observes touch, which nothing learns from: it may join `observation`"
    ]
    assert made("InPlace").notice == ""


def test_the_observations_that_are_played_are_copies():
    envs = made("OwnObservation")
    first = envs.reset([0], [0])
    before = first.observation.copy()
    taken = envs.step(np.ones((1, 2), np.float32), [0])
    np.testing.assert_array_equal(first.observation, before)
    np.testing.assert_allclose(taken.observation, before + 0.1, atol=1e-6)


def test_episodes_that_terms_and_callbacks_see_cannot_be_written():
    trainer = trainer_of(EVERYTHING)
    seen = []
    for term in trainer.terms:
        term.observe = lambda episodes, cycle: seen.extend(episodes.values())
        term.heldout = lambda weights, episodes: seen.append(episodes) or {}
    trainer.collect()
    trainer.evaluate(seen.append)
    # of two workers to three terms; then of an evaluation, and to terms of random actions
    assert len(seen) == 3 * 2 + 1 + 3 + 3
    for episodes in seen:
        for name, values in episodes.named().items():
            assert not values.flags.writeable, name
