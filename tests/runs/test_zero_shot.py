import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.config.fields import with_fields
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import EnvironmentInfo, Support
from music_tf.envs.toys import STEP_LENGTH
from music_tf.errors import UsageError
from music_tf.networks.embedding import Embedding, Ends
from music_tf.runs import zero_shot
from music_tf.runs.zero_shot import (
    Places,
    ReachingPolicy,
    measure_zero_shot,
    moving_goals,
    places_of,
    points_of,
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


@pytest.mark.thorough
def test_an_embedding_leads_a_follower_to_goals_that_it_is_not_shown(evaluation, monkeypatch):
    follower, tried, practised, play = Follower(), [], [], Evaluation.play_some
    monkeypatch.setattr(
        Evaluation,
        "play_some",
        lambda *of: tried.extend(of[2]) or practised.append(of[1]) or play(*of),
    )
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
    assert found["ours"]["zero_shot/end_with_hold"] == 1.0
    assert found["ours"]["zero_shot/hold"] == 0.0
    braked = [policy for policy in practised if getattr(policy, "stop", 0.0)]
    assert [policy.hold for policy in braked] == [False] * 4 + [True] * 4  # at the same distances
    assert [policy.stop for policy in braked[:4]] == [policy.stop for policy in braked[4:]]
    assert not any("follow" in name for name in found["ours"])  # it has no speeds
    assert found["nothing"]["zero_shot/ever"] < 0.3
    assert found["random conditions"]["zero_shot/ever"] < 0.5
    assert not np.any(np.concatenate(follower.goals))
    assert min(tried) >= 10**6  # goals of no evaluation, on which the stop is chosen
    # nothing but the start says where to go: the same follower without a way ends elsewhere
    assert found["random conditions"]["zero_shot/end"] < found["ours"]["zero_shot/end"]


class Drifter:  # acts along its condition, and beside this always by a quarter of x
    def act(self, observation, goal, condition, noise):
        del observation, goal, noise
        return condition @ TURNED.T / 30.0 + np.float32([0.25, 0.0])


def test_it_stops_near_or_holds_which_is_the_mean_of_acts_under_opposite_conditions():
    places = Places(np.array([0, 1]), np.array([True, True]), np.array([0, 1]))
    policy = ReachingPolicy(Drifter(), PLANE, places, stop=3.0, hold=True)
    here, goals = np.zeros([2, 3], np.float32), np.float32([[0.09, 0.0, 0.0], [0.0, 0.11, 0.0]])
    acts = policy(here, goals, None, None)  # a tenth of a unit is near
    np.testing.assert_allclose(acts, [[0.25, 0.0], [0.25, 1.0]], atol=1e-6)
    acts = dataclasses.replace(policy, hold=False)(here, goals, None, None)
    np.testing.assert_allclose(acts, [[0.0, 0.0], [0.25, 1.0]], atol=1e-6)


SPEEDY = PLANE._replace(
    weights=[*PLANE.weights[:2], PLANE.weights[2] / 30.0, PLANE.weights[3]],
    condition="ball",
    near=1.5 * STEP_LENGTH,  # v is a step of the point
)
UNITS = PLANE._replace(condition="ball", near=0.3, scale=np.float32([[5.0, 5.0], [1.0, 2.0]]))
"""v is 0.2 deviations; an x of 1 is one of these, and so is a y of 2."""


def goals_at(path, ends, leads=UNITS, steps=8, share=0.5, specified=(True, True, True)):
    """The goal that moves, where the environment's own goals lie between two corners."""
    corners = np.float32(ends)
    reset = lambda _, seeds: SimpleNamespace(desired_goal=corners[[seeds[0] % 2]])  # noqa: E731
    envs = SimpleNamespace(reset=reset, spec=SimpleNamespace(max_episode_steps=steps))
    count = len(leads.columns)
    places = Places(np.arange(count), np.array(specified[:count]), np.arange(count))
    policy = ReachingPolicy(Follower(), leads, places)
    return moving_goals(SimpleNamespace(envs=envs), policy, str(path), share)


def test_a_goal_walks_from_point_to_point_at_a_share_of_the_speed_in_deviations(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text("0,0\n0.3,0\n0.3,0.8\n")
    found = goals_at(path, ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.4]))  # 0.1 of x a step, then 0.2 of y
    y = [0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 0.8]  # and it ends in the last point
    walked = np.stack([[0.0, 0.1, 0.2, *[0.3] * 6], y, [0.2] * 9], axis=-1)
    np.testing.assert_allclose(found, walked, atol=1e-6)
    path.write_text("0,0\n0.15,0\n0,0\n")  # closed: again and again
    found = goals_at(path, ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found[:, 0], [0, 0.1, 0.1, 0, 0.1, 0.1, 0, 0.1, 0.1], atol=1e-6)


def test_a_path_whose_points_differ_in_no_goal_is_refused(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text("\ufeff0,0\n0,0.3\n", encoding="utf-8")  # as spreadsheets begin a file
    with pytest.raises(UsageError, match="expected points that differ for the environment's goals"):
        goals_at(path, ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.4]), specified=(True, False))


def test_shapes_lie_amid_the_goals_and_stand_upright_where_these_differ_in_height(caplog):
    air = PLANE._replace(columns=(0, 1, 2), condition="ball", near=1.5 * 0.16 * np.pi / 8)
    ends = ([-0.3, 0.5, 0.2], [0.3, 0.7, 0.6])
    circle = goals_at("circle", ends, air, steps=4, share=1.0)[:3]  # an eighth of it a step
    half = 0.08 * np.sqrt(0.5)
    quarter = [[0.08, 0.6, 0.4], [half, 0.6, 0.4 + half], [0.0, 0.6, 0.48]]
    np.testing.assert_allclose(circle, quarter, atol=1e-3)
    flat = goals_at("circle", ([-0.3, 0.5, 0.4], [0.3, 0.7, 0.4]), air, steps=4, share=1.0)
    np.testing.assert_allclose(flat[2], [0.0, 0.68, 0.4], atol=1e-3)
    square, eight = (goals_at(path, ends, air, 999, 0.02) for path in ("square", "eight"))
    np.testing.assert_allclose(np.ptp(square, axis=0), [0.16, 0.0, 0.16], atol=1e-3)
    np.testing.assert_allclose(np.abs(square - [0.0, 0.6, 0.4]).max(axis=1), 0.08, atol=1e-3)
    np.testing.assert_allclose(np.ptp(eight, axis=0), [0.16, 0.0, 0.08], atol=1e-3)
    assert not caplog.records
    goals_at("circle", ([-0.3, 0.5, 0.35], [0.3, 0.7, 0.45]), air, steps=4, share=1.0)
    told = "--path: 3 of its 5 goals lie outside [-0.3, 0.5, 0.35] to [0.3, 0.7, 0.45]"
    assert told in caplog.text


@cases(
    ("text", "why"),
    ("1,2,3\n2,3,4\n", r"rows such as \[\[1.0, 2.0, 3.0\], "),
    ("x,y\n1,2\n2,3\n", "could not convert string 'x'"),
    ("1,2\n", r"rows such as \[\[1.0, 2.0\]\]"),
    ("1,2\nnan,2\n", r"rows such as .*nan"),
    ("1,2\n1e38,2\n", r"rows such as .*e\+37"),
    ("", "zero-size"),
    (None, "No such file"),
)
@pytest.mark.filterwarnings("ignore:.*no data")
def test_a_path_that_is_none_is_refused_with_what_was_expected(tmp_path, text, why):
    path = tmp_path / "path.csv"
    if text is not None:
        path.write_text(text)
    told = rf"--path: expected circle, square, eight, or a .csv .* \[0, 1\]; got .*\n.*{why}"
    with pytest.raises(UsageError, match=told):
        points_of(str(path), SPEEDY)


@pytest.mark.thorough
def test_one_with_speeds_follows_a_circle_at_the_distance_that_its_speed_allows(
    evaluation, monkeypatch
):
    def lost(played, info):  # one of four
        assert info is evaluation.envs.info or info == evaluation.envs.info
        return SimpleNamespace(lost=np.arange(len(played.length)) % 4 == 0)

    monkeypatch.setattr(zero_shot, "cut_where_lost", lost)
    short = with_fields(REACH, {"env.kwargs": '{"max_episode_steps": 30}'})  # the circle has 150
    evaluation = evaluation._replace(config=short)
    ours = measure_zero_shot(evaluation, Follower(), SPEEDY, "RUN", goals=4)["ours"]
    assert ours["zero_shot/end"] == 1.0
    assert "zero_shot/hold" not in ours  # speeds have no opposite at a goal
    for name, share in (("follow_slow", 0.25), ("follow", 0.5), ("follow_fast", 1.0)):
        # the goal goes on by an angle of the circle, and each step removes 2 / 3 of the way to its
        # next place: e' = (e + chord) / 3, and both turn: |e| = chord / 3 / |exp(i angle) - 1 / 3|
        angle = share * STEP_LENGTH / 0.08
        behind = 0.16 / 3 * np.sin(angle / 2) / abs(np.exp(1j * angle) - 1 / 3)
        assert ours[f"zero_shot/{name}_m"] == pytest.approx(behind, rel=0.02)
        assert ours[f"zero_shot/{name}_lost"] == 0.25


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
    envs = SimpleNamespace(info=EnvironmentInfo(support=TABLE))
    goals = np.float32([[1.3, 0.7, height] for height in heights])
    played = make_episodes(0, 3)._replace(desired_goal=goals, length=np.ones(3, int))
    found = zero_shot._shares(SimpleNamespace(envs=envs), played)
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


def test_goals_say_columns_that_equal_the_achieved_goal_and_leave_what_else_is_seen():
    observation = np.random.default_rng(0).normal(size=(3, 6, 10)).astype(np.float32)
    seen = {"observation": observation, "achieved_goal": observation[..., [3, 4, 5]]}
    played = make_episodes(0, 1)._replace(**seen)
    places = places_of(PLANE._replace(columns=(7, 4)), played, "RUN")
    here, there = places.of(np.arange(10.0)[None], np.array([[0.3, 0.4, 0.5]]))
    np.testing.assert_array_equal(here, [[7.0, 4.0]])
    np.testing.assert_array_equal(there, [[7.0, 0.4]])
    goals = places.goal_at(np.float32([9.0, 0.4]), np.float32([[0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(goals, [[0.1, 0.4, 0.3]])  # the place says nothing of the others
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
    np.testing.assert_array_equal(found.specified, [True, True])
    equal = np.repeat(place[:, :1], 2, axis=1)  # on the diagonal all fit
    np.testing.assert_array_equal(places_seen((0, 1), equal, equal).numbers, [0, 1])


def test_nothing_is_decided_from_columns_that_never_differ_and_that_is_said(caplog):
    place = np.random.default_rng(0).uniform(size=(9, 3))
    place[:, 1:] = 0.5
    np.testing.assert_array_equal(places_seen((0, 1), place, place).specified, [True, False])
    assert "RUN: columns 1 never differ in 1 episodes" in caplog.text
    with pytest.raises(UsageError, match=r"(?s)^RUN: .*of which \[1, 2\] never differ in 1 .*cure"):
        places_seen((1, 2), place, place)
