import json
from types import SimpleNamespace

import numpy as np
import pytest

from music_tf.config.conditioning import ConditionConfig
from music_tf.distributed import Communicator
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.registry import Support
from music_tf.measures import behaviour
from music_tf.measures.behaviour import direction, first_contact, support_cells
from music_tf.rollout import padded
from music_tf.runs import comparison
from music_tf.runs.comparison import (
    CONTROL,
    compare,
    cover,
    end_spread,
    judge,
    linearly_explained,
    measure_skills,
    separate,
    skill_rows,
    variance_explained,
)
from music_tf.runs.inspection import ExtraMeasures, evaluate_run
from music_tf.runs.loaded_run import load_run
from music_tf.storage.metrics import COVERAGE, MetricsWriter
from music_tf.training.evaluation import Evaluation, noise, zero_policy
from tests.kit.cases import cases
from tests.kit.saved_run import save_run, small_config
from tests.measures.test_behaviour import AWAY, INFO, episode, path

TOWARDS = {"condition": ConditionConfig(kind="sphere", size=2)}


def contact(gripper, places, length=None):
    length = np.array([len(places) - 1 if length is None else length])
    return int(first_contact(episode(gripper, places), length, INFO)[0])


def test_contact_is_the_first_step_that_moves_the_object_near_the_gripper_and_needs_both():
    assert contact(path(0.2, 0.2, 0.2, 0.2), path(0.25, 0.25, 0.27, 0.29)) == 2
    assert contact(path(0.2, 0.2), path(0.25, 0.2505)) == 2  # half a millimetre is none
    assert contact(AWAY, path(0.2, 0.3)) == 2  # it moved by itself
    assert contact(path(0.1, 0.2), path(0.25, 0.27)) == 2  # the gripper came near afterwards
    assert contact(path(0.2, 0.2, 0.2), path(0.25, 0.25, 0.27), length=1) == 2
    states, length = episode(AWAY, path(0.2, 0.3)), np.array([1])
    for name in ("object", "gripper"):
        info = type(INFO)(**{"object": (3, 4, 5), "gripper": (0, 1, 2), name: None})
        assert first_contact(states, length, info).tolist() == [2]


@cases(
    ("low", "high", "cells"),
    ((1.05, 0.40), (1.55, 1.10), 140),  # 10 by 14, though 1.1 / 0.05 is a little over 22
    ((-1.0, -1.0), (1.0, 1.0), 1600),
    ((0.01, 0.01), (0.11, 0.06), 6),  # cells 0, 1 and 2 by cells 0 and 1
)
def test_a_support_has_as_many_cells_as_it_reaches_into(low, high, cells):
    assert support_cells(Support(low=low, high=high, rest_height=0.0)) == cells


def test_the_spread_is_the_distance_from_the_mean_of_the_same_start():
    # Start 0 ends at x = 0 and 2: variance 2 with one degree of freedom; start 1 always at 9.
    ends = np.array([[[0, 0, 0], [9, 9, 9]], [[2, 0, 0], [9, 9, 9]]], np.float32)
    assert end_spread(ends) == pytest.approx(1.0)


def test_skills_explain_what_lies_between_their_means_and_dealt_out_ones_by_chance():
    # x: skill 0 ends at 0 and 2, skill 1 at 4 and 6; means 1 and 5, over all 3.
    # Between 2 * (4 + 4) = 16, total 9 + 1 + 1 + 9 = 20.
    ends = np.zeros((2, 2, 3), np.float32)
    ends[..., 0] = [[0, 2], [4, 6]]
    assert variance_explained(ends) == pytest.approx(0.8)
    assert variance_explained(ends[:, ::-1]) == pytest.approx(0.8)
    assert variance_explained(np.full((3, 2, 3), 0.1, np.float32)) == 0.0
    assert variance_explained(ends.transpose(1, 0, 2)) == pytest.approx(0.2)
    ends = np.random.default_rng(0).standard_normal((400, 3, 5, 3)).astype(np.float32)
    mean = np.mean([variance_explained(each) for each in ends])
    assert mean == pytest.approx((3 - 1) / (3 * 5 - 1), abs=0.01)


def test_noise_is_that_of_an_episode_on_top_of_what_else_is_added():
    spec = LockstepEnvs("music_tf/PointPush-v0", 1).spec
    first, again, other = (noise(spec, 0.05, draw)(7) for draw in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.shape == (spec.max_episode_steps, spec.action_dim)
    assert first.std() == pytest.approx(0.05, rel=0.3)
    both = noise(spec, 0.05, 0, lambda index: np.full_like(first, index))(7)
    np.testing.assert_allclose(both, first + 7.0, rtol=1e-6)


def carry(observation, goal, skill, noise):
    """Goes to the disc, holds it and carries it to x = 0.8; the first of several skills to -0.8."""
    way = observation[:, 6:8]
    touching = np.linalg.norm(way, axis=1, keepdims=True) <= 0.15
    across = np.where((skill[:, :1] > 0) & (skill.shape[1] > 1), -0.8, 0.8) - observation[:, :1]
    sideways = np.concatenate([across, np.zeros_like(across)], axis=1)
    moves = np.concatenate([10 * np.where(touching, sideways, way), 2.0 * touching - 1.0], axis=1)
    return np.clip(moves, -1, 1).astype(np.float32)


def evaluation(env_id="music_tf/PointPush-v0", **changes):
    return Evaluation(
        LockstepEnvs(env_id, 4), small_config("ddpg_music", env_id, **changes), Communicator()
    )


def opposite(observation, goal, skill, noise):
    """The first skill goes up and to the right, all others the other way."""
    del observation, goal
    return np.where(skill[:, :1] == 1.0, 1.0, -1.0) * np.ones_like(noise)


def test_skills_are_shown_beside_random_ones_by_how_far_they_lie_apart():
    square = evaluation("music_tf/Square-v0", skills=3)
    found = compare(square, opposite, 20).policies
    ours, random = found["ours"], found["random"]
    corners = np.hypot(10, 10)  # from either to the start, which all have been at
    assert ours["skill/hausdorff_mean"] == pytest.approx(2 * corners / 3)  # two are alike
    assert (ours["skill/hausdorff_min"], ours["skill/spread"]) == (0.0, 0.0)
    assert 0.5 < random["skill/hausdorff_min"] <= random["skill/hausdorff_mean"] < 8.0
    assert random["skill/spread"] > 0.5
    assert {"disk/coverage", "skill/spread"} < set(ours) == set(random)
    assert compare(square, opposite, 20).policies == found
    one = evaluation("music_tf/Square-v0")  # has nothing to be apart from
    names = [name for row in compare(one, opposite, 2).policies.values() for name in row]
    assert not [name for name in names if name.startswith("skill/")]
    for acting in (one, evaluation(skills=3, pinned_skill=1)):
        assert measure_skills(acting, pushes, 1) == []


@pytest.mark.parametrize(("skills", "each"), [(4, 10), (150, 1)])
def test_episodes_are_divided_among_skills(skills, each, monkeypatch):
    square = evaluation("music_tf/Square-v0", skills=skills, lost_object="continue")
    played = []

    def play(self, policy, episodes, skill=None, added=None):
        played.append(episodes)
        states = np.zeros([episodes, 11, 2], np.float32)
        return SimpleNamespace(observation=states, extras={}, length=np.full(episodes, 10))

    monkeypatch.setattr(Evaluation, "play", play)
    assert separate(square, opposite, 100)["skill/hausdorff_mean"] == 0.0
    assert played == [each] * skills


def test_control_of_ours_stands_beside_that_of_the_random_policy(monkeypatch):
    monkeypatch.setattr(behaviour, "NEAR", 0.2)  # the disc is wider than the blocks of Fetch
    found = judge(evaluation(), carry, 12, 320.0)
    ours, random = found["ours"], found["random"]
    other = ("skill", "rotation", "descriptor")  # with skills, of hands, without an object
    assert list(ours) == [name for name in CONTROL if not any(word in name for word in other)]
    assert ours["control/rollout_coverage"] == pytest.approx(320 / 1600)
    assert "control/rollout_coverage" not in random
    assert ours["control/contact_rate"] > 0.9 > random["control/contact_rate"]
    assert 1.0 < ours["control/steps_to_contact"] < 15.0
    assert random["control/coverage"] < ours["control/coverage"] < 1.0
    assert 0.0 < ours["control/end_spread_m"] < 1.0
    assert ours["control/information"] > ours["control/information_null"] + 0.2
    assert ours["control/information_p"] == pytest.approx(1 / 21)


def test_two_judgements_are_the_same_and_without_an_object_there_is_nothing_to_judge():
    once = evaluation()
    first = judge(once, carry, 5)
    assert judge(once, carry, 5) == first
    assert "control/steps_to_contact" not in first["random"]  # most episodes have no contact
    found = judge(evaluation("music_tf/PointReach-v0"), lambda *given: 0 * given[3], 3)
    assert found == {"ours": {}, "random": {}}


@pytest.mark.thorough
@cases(
    ("changes", "chance", "least", "most", "few"),
    ({"skills": 2}, 1 / 49, 0.15, 0.1, 1),
    (TOWARDS, 2 / 24, 0.3, 0.3, 3),  # by a linear map, and any fits three ends
    ids=["skills", "directions"],
)
def test_skills_that_lead_elsewhere_explain_more_than_chance_and_few_ends_say_nothing(
    changes, chance, least, most, few
):
    found = judge(evaluation(**changes), carry, 25)
    ours, random = found["ours"], found["random"]
    assert ours["control/skill_variance_chance"] == pytest.approx(chance)
    assert ours["control/skill_variance"] > least
    assert random["control/skill_variance"] < most
    found = judge(evaluation(**changes), carry, few)["ours"]
    assert not [name for name in found if name.startswith("control/skill_variance")]


def test_skills_of_a_robot_without_an_object_end_where_its_descriptor_ends():
    found = judge(evaluation("music_tf/Square-v0", skills=2), opposite, 20)["ours"]
    assert found["control/descriptor_cells"] == 21.0  # 0 to 10 on the diagonal, and -1 to -10
    assert found["control/skill_variance"] == pytest.approx(1.0)
    assert found["control/skill_variance_chance"] == pytest.approx(1 / 39)
    square = evaluation("music_tf/Square-v0", **TOWARDS)
    both = judge(square, lambda observation, goal, skill, noise: 0.5 * skill, 20)
    assert both["ours"]["control/skill_variance"] == pytest.approx(1.0)
    assert both["random"]["control/skill_variance"] < 0.6
    unnamed = judge(evaluation("music_tf/PointReach-v0", **TOWARDS), opposite, 20)
    assert unnamed == {"ours": {}, "random": {}}


def test_a_linear_map_explains_what_skills_do_and_what_follows_a_direction():
    generator = np.random.default_rng(0)
    ends = generator.normal(size=(4, 6, 3)) + generator.normal(size=(4, 1, 3))
    found = linearly_explained(np.repeat(np.eye(4), 6, axis=0), ends.reshape(-1, 3))
    assert found == pytest.approx(variance_explained(ends))
    towards = generator.normal(size=(500, 2))
    turned = towards @ [[0.0, 2.0, 0.5], [-2.0, 0.0, 0.0]] + 7.0
    assert linearly_explained(towards, turned) == pytest.approx(1.0)
    # variances 4.25 and 4 of the way along z, and 3 of what has nothing to do with it
    noise = generator.normal(size=(500, 3))
    assert linearly_explained(towards, turned + noise) == pytest.approx(8.25 / 11.25, abs=0.04)
    assert linearly_explained(towards, noise) < 0.03
    assert linearly_explained(towards, np.ones([500, 3])) == 0.0


def test_what_was_covered_and_kept_by_ours_stands_beside_that_of_the_random_policy():
    found = cover(evaluation(), carry)
    assert (list(found), list(found["ours"])) == (["ours", "random"], list(COVERAGE))
    # the disc is carried to x = 0.8; it does not move from there
    assert found["ours"]["coverage/moved_and_kept_rate"] > 0.5
    assert found["ours"]["coverage/displacement_cells"] > 100
    assert found["random"]["coverage/moved_and_kept_rate"] < 0.2
    assert cover(evaluation("music_tf/PointReach-v0"), zero_policy) == {}


@pytest.mark.thorough
def test_shoves_cover_much_but_keep_little_and_are_the_same_in_any_batch(monkeypatch):
    monkeypatch.setattr(comparison, "COVERED", 10)
    config = small_config("ddpg_music", "FetchPush-v4")
    found = []
    for count in (3, 10):
        envs = LockstepEnvs(config.env_id, count)
        found.append(cover(Evaluation(envs, config, Communicator()), zero_policy))
        envs.close()
    assert found[0] == found[1]
    ours, random, shove, anywhere = found[0].values()
    assert list(found[0]) == ["ours", "random", "scripted shove", "shove in random directions"]
    assert ours["coverage/kept_rate"] == random["coverage/kept_rate"] == 1.0
    assert ours["coverage/displacement_cells"] == 1.0
    assert min(shove["coverage/object_cells"], anywhere["coverage/object_cells"]) > 3 * max(
        ours["coverage/object_cells"], 10.0
    )
    assert shove["coverage/kept_rate"] < 0.2
    assert shove["coverage/kept_rate"] < anywhere["coverage/kept_rate"] < 0.7


@pytest.mark.parametrize(("episodes", "length"), [(1, None), (3, 1)])
def test_information_needs_a_second_episode_and_a_second_step(monkeypatch, episodes, length):
    play = Evaluation.play

    def cut(*given, **named):
        played = play(*given, **named)
        return played if length is None else padded(played._replace(length=0 * played.length + 1))

    monkeypatch.setattr(Evaluation, "play", cut)
    found = judge(evaluation(), carry, episodes)["ours"]
    assert "control/end_spread_m" in found
    assert not [name for name in found if "information" in name]


@pytest.mark.thorough
def test_what_was_judged_of_a_checkpoint_is_stored_and_shown(tmp_path, capsys):
    save_run(tmp_path)
    MetricsWriter(tmp_path, resume_after=None).write(
        {"time/epoch": 1.0, "time/env_steps": 100.0, "rollout/object_coverage": 160.0}
    )
    stored = evaluate_run(load_run(tmp_path), 4, extras=ExtraMeasures(full=True))
    assert stored == json.loads((tmp_path / "evaluation.json").read_text())
    shown = capsys.readouterr().out
    assert stored["control"]["ours"]["control/rollout_coverage"] == pytest.approx(0.1)
    for judged in ("control", "coverage"):
        assert stored[judged]["ours"]
        assert [name for name in stored[judged]["ours"] if name not in shown] == []
    assert stored["coverage_episodes"] == 200


def pushes(observation, goal, skill, noise):
    """Skill 0 stays; skills 1 and 2 run against the disc, the latter more slowly."""
    del goal, noise
    away = observation[:, 3:5] - observation[:, :2]
    speed = np.float32([0.0, 1.0, 0.5])[skill.argmax(axis=1), None]
    moves = speed * away / np.linalg.norm(away, axis=1, keepdims=True)
    return np.concatenate([moves, np.full_like(speed, -1.0)], axis=1)


def test_each_skill_is_measured_by_what_it_does_to_the_object():
    where = evaluation(skills=3)
    still, fast, slow = measure_skills(
        where, pushes, 6, lambda played: {"skill/accuracy_heldout": float(played.skill[0, 1])}
    )
    assert [row["skill"] for row in (still, fast, slow)] == [0, 1, 2]
    assert still["metrics"]["eval/object_displacement_m"] == 0.0
    assert (still["shift_m"], fast["metrics"]["eval/object_moved_rate"]) == ([0.0, 0.0, 0.0], 1.0)
    displacements = [row["metrics"]["eval/object_displacement_m"] for row in (fast, slow)]
    assert displacements[0] > displacements[1] > 0.1
    played = where.play(pushes, 6, 1)
    places = [p[[0, n], 3:6] for p, n in zip(played.observation, played.length, strict=True)]
    expected_shift = np.mean([end - start for start, end in places], axis=0)
    np.testing.assert_allclose(fast["shift_m"], expected_shift, atol=1e-6)
    assert np.abs(expected_shift).max() > 0.05
    assert fast["metrics"] == where.behaviour(played) | {"skill/accuracy_heldout": 1.0}
    assert still["metrics"]["skill/accuracy_heldout"] == 0.0


@cases(
    ("x", "y", "text"),
    (0.3, 0.3, "↗ 45°"),
    (0.0, -0.2, "↓ 270°"),
    (0.2, -0.001, "→ 0°"),
    (0.03, -0.03, "-"),
)
def test_a_direction_is_an_arrow_seen_from_above(x, y, text):
    assert direction(x, y) == text


def test_the_table_names_skills_and_ends_with_the_random_policy():
    measured = [
        {
            "skill": 4,
            "metrics": {"eval/object_moved_rate": 0.5, "skill/accuracy_heldout": 0.9},
            "shift_m": [0.0, 0.2, 0.1],
        },
        {"skill": 5, "metrics": {"eval/success_rate": 1.0}, "shift_m": None},
    ]
    rows = skill_rows(measured, {"eval/object_moved_rate": 0.25, "eval/object_coverage": 9.0})
    assert list(rows) == ["skill 4", "skill 5", "random"]
    assert rows["skill 4"] == {
        "accuracy": 0.9,
        "moved": 0.5,
        "dx m": 0.0,
        "dy m": 0.2,
        "dz m": 0.1,
        "way": "↑ 90°",
    }
    assert (rows["skill 5"], rows["random"]) == ({"success": 1.0}, {"moved": 0.25})
