import dataclasses
import types

import numpy as np
import pytest

from music_tf.config.settings import ConditionConfig
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.envs.toys import STEP_LENGTH
from music_tf.errors import UsageError
from music_tf.networks.embedding import Embedding
from music_tf.networks.ends import Ends
from music_tf.runs import zero_shot
from music_tf.runs.zero_shot import (
    Places,
    Reaching,
    measure_zero_shot,
    places_of,
    reached_states,
    reaching,
)
from music_tf.training.evaluation import Evaluation
from tests.kit.cases import cases
from tests.kit.episodes import make_episodes
from tests.kit.small import BASE

REACH = dataclasses.replace(
    BASE,
    env_id="music_tf/PointReach-v0",
    goals="zero",
    condition=ConditionConfig(kind="sphere", size=2),
)
TURNED = np.float32([[0.0, 30.0], [-30.0, 0.0]])
"""x and y, turned by a quarter and thirty times as long."""
PLANE = Embedding(
    [
        np.concatenate([np.eye(2), -np.eye(2)], axis=1).astype(np.float32),
        np.zeros(4, np.float32),
        np.concatenate([TURNED, -TURNED]),
        np.zeros(2, np.float32),
    ],
    None,
    (0, 1),
    "sphere",
)


class Follower:  # acts along its condition, and remembers which goals it was shown
    def __init__(self):
        self.goals = []

    def act(self, observation, goal, condition, noise):
        del observation, noise
        self.goals.append(goal)
        return (condition @ TURNED.T / 30.0).astype(np.float32)


@pytest.fixture
def evaluation():
    envs = LockstepEnvs(REACH.env_id, 4, REACH.env)
    yield Evaluation(envs, REACH, Communicator(alone=True))
    envs.close()


def test_an_embedding_leads_a_follower_to_goals_that_it_is_not_shown(evaluation, monkeypatch):
    follower, tried, play = Follower(), [], Evaluation.play_some
    monkeypatch.setattr(Evaluation, "play_some", lambda *of: tried.extend(of[2]) or play(*of))
    shown, whole = [], Evaluation.play
    monkeypatch.setattr(
        Evaluation, "play", lambda *of, **more: shown.append(whole(*of, **more)) or shown[-1]
    )
    found = measure_zero_shot(evaluation, follower, PLANE, "RUN", goals=24)
    for played in shown:  # all policies have goals of the environment, which training never shows
        assert len(np.unique(played.desired_goal, axis=0)) == 24
    assert found["ours"]["zero_shot/ever"] == 1.0
    assert found["ours"]["zero_shot/end_with_brake"] == 1.0
    assert found["ours"]["zero_shot/stop"] == 0.0  # it rests at goals by itself
    assert found["nothing"]["zero_shot/ever"] < 0.3
    assert found["random conditions"]["zero_shot/ever"] < 0.5
    assert not np.any(np.concatenate(follower.goals))
    assert min(tried) >= 10**6  # goals of no evaluation, on which the stop is chosen
    # nothing but the start says where to go: the same follower without a way ends elsewhere
    assert found["random conditions"]["zero_shot/end"] < found["ours"]["zero_shot/end"]


def test_it_stops_within_its_distance_and_goes_on_beyond():
    places = Places(np.array([0, 1]), np.array([True, True]), np.array([0, 1]))
    policy = Reaching(Follower(), PLANE, places, stop=3.0)  # a tenth of a unit
    here = np.float32([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    goals = np.float32([[0.09, 0.0, 0.0], [0.11, 0.0, 0.0]])
    np.testing.assert_allclose(policy(here, goals, None, None), [[0.0, 0.0], [1.0, 0.0]], atol=1e-6)


def test_states_after_an_early_end_reach_nothing_and_the_last_one_is_where_it_ends(
    evaluation, monkeypatch
):
    shown = evaluation._replace(config=dataclasses.replace(REACH, goals="environment"))
    played = make_episodes(1, 3, lengths=[2, 2, 5])
    for episode, state in enumerate((2, 4, 1)):
        played.achieved_goal[episode, state] = played.desired_goal[episode]
    reached = np.zeros([3, 6], np.bool_)
    reached[[0, 2], [2, 1]] = True
    np.testing.assert_array_equal(reached_states(shown, played), reached)
    monkeypatch.setattr(Evaluation, "play", lambda *of, **and_by: played)
    found = measure_zero_shot(evaluation, Follower(), PLANE, "RUN")
    assert found["nothing"] == {"zero_shot/ever": 2 / 3, "zero_shot/end": 1 / 3}


TABLE = Support(low=(1.0, 0.4), high=(1.6, 1.1), rest_height=0.42)


@cases(
    ("heights", "shares"),
    ((0.42, 0.60, 0.46), {"zero_shot/end_air": 0.5, "zero_shot/end_table": 1.0}),
    ((0.42, 0.44, 0.44), {}),  # none is in the air
)
def test_goals_in_the_air_are_counted_apart(heights, shares, monkeypatch):
    reached = np.bool_([[0, 1], [1, 0], [0, 1]])
    monkeypatch.setattr(zero_shot, "reached_states", lambda *of: reached)
    envs = types.SimpleNamespace(info=EnvironmentInfo(family="", support=TABLE))
    goals = np.float32([[1.3, 0.7, height] for height in heights])
    played = make_episodes(0, 3)._replace(desired_goal=goals, length=np.ones(3, int))
    found = zero_shot._shares(types.SimpleNamespace(envs=envs), played)
    assert found == {"zero_shot/ever": 1.0, "zero_shot/end": pytest.approx(2 / 3), **shares}


def test_rewards_of_unknown_bounds_are_refused_with_what_to_train_with(evaluation):
    info = dataclasses.replace(evaluation.envs.info, reward_bounds=(-np.inf, np.inf))
    evaluation.envs.info = info
    told = r"--zero-shot: .*\n.*music-tf train RECIPE --env-id music_tf/PointReach-v0 --world.rewa"
    with pytest.raises(UsageError, match=told):
        reached_states(evaluation, make_episodes(1, 3, lengths=[2, 2, 5]))


def test_of_skills_the_one_acts_that_ends_nearest_to_the_goal(evaluation):
    line = np.linspace(-1.0, 1.0, 13, dtype=np.float32)
    places = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)

    class Walker:  # goes to the place of its skill, and remembers its skills
        def __init__(self):
            self.skills = []

        def act(self, observation, goal, skill, noise):
            del goal, noise
            self.skills.append(skill)
            way = skill @ places - observation[:, :2]
            return np.clip(way / STEP_LENGTH, -1.0, 1.0)

    skilled = dataclasses.replace(REACH, condition=ConditionConfig(), skills=169)
    walker, shown = Walker(), evaluation._replace(config=skilled)
    found = measure_zero_shot(shown, walker, Ends(places, (0, 1)), "RUN", goals=24)
    assert found["ours"]["zero_shot/end"] > 0.9  # the grid is finer than what counts as reached
    assert found["random conditions"]["zero_shot/end"] < 0.3
    places = np.float32([[0.7, 0.7], [-0.7, 0.7], [-0.7, -0.7], [0.7, -0.7]])
    few = evaluation._replace(config=dataclasses.replace(skilled, skills=4))
    _, policy = reaching(few, walker, Ends(places, (0, 1)), "RUN")
    here, goals = np.zeros([2, 3]), np.float32([[0.5, 0.1, 0.0], [-0.1, -0.5, 0.0]])
    policy(here, goals, None, None)
    np.testing.assert_array_equal(walker.skills[-1], np.eye(4)[[0, 2]])
    goes = dataclasses.replace(policy, place=np.float32([-0.4, 0.4]))
    goes(here, goals, None, None)  # wherever the goal is
    np.testing.assert_array_equal(walker.skills[-1], np.eye(4)[[1, 1]])


def test_goals_at_a_place_keep_what_the_place_does_not_say():
    places = Places(np.array([7, 4]), np.array([False, True]), np.array([0, 1]))
    goals = places.goal_at(np.float32([9.0, 0.4]), np.float32([[0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(goals, [[0.1, 0.4, 0.3]])


def test_goals_say_columns_that_equal_the_achieved_goal_and_leave_what_else_is_seen():
    observation = np.random.default_rng(0).normal(size=(3, 6, 10)).astype(np.float32)
    seen = {"observation": observation, "achieved_goal": observation[..., [3, 4, 5]]}
    played = make_episodes(0, 1)._replace(**seen)
    places = places_of(PLANE._replace(columns=(7, 4)), played, "RUN")
    here, there = places.of(np.arange(10.0)[None], np.array([[0.3, 0.4, 0.5]]))
    np.testing.assert_array_equal(here, [[7.0, 4.0]])
    np.testing.assert_array_equal(there, [[7.0, 0.4]])
    with pytest.raises(UsageError, match=r"RUN: expected an embedding that sees what goals are"):
        places_of(PLANE._replace(columns=(7, 8)), played, "RUN")


def places_seen(columns, observed, achieved):  # of an episode that shows these columns
    seen = {"observation": np.float32(observed)[None], "achieved_goal": np.float32(achieved)[None]}
    return places_of(PLANE._replace(columns=columns), make_episodes(0, 1)._replace(**seen), "RUN")


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_each_column_is_another_component_whatever_their_unit(unit):
    place = unit * np.random.default_rng(0).uniform(size=(9, 2))
    found = places_seen((1, 0), place, place)
    np.testing.assert_array_equal(found.numbers, [1, 0])
    np.testing.assert_array_equal(found.given, [True, True])
    equal = np.repeat(place[:, :1], 2, axis=1)  # on the diagonal all fit
    np.testing.assert_array_equal(places_seen((0, 1), equal, equal).numbers, [0, 1])


def test_nothing_is_decided_from_columns_that_never_differ_and_that_is_said(caplog):
    place = np.random.default_rng(0).uniform(size=(9, 3))
    place[:, 1:] = 0.5
    np.testing.assert_array_equal(places_seen((0, 1), place, place).given, [True, False])
    assert "RUN: columns 1 never differ in 1 episodes" in caplog.text
    with pytest.raises(UsageError, match=r"(?s)^RUN: .*of which \[1, 2\] never differ in 1 .*cure"):
        places_seen((1, 2), place, place)
