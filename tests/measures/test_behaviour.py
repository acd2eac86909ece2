import dataclasses

import numpy as np
import pytest

from music_tf.envs.registry import EnvironmentInfo, Support, lookup
from music_tf.measures.behaviour import (
    behaviour_metrics,
    coverage,
    first_contact,
    rotation,
    shifts,
    summarize,
    support_lost_at,
    visited_cells,
    ways_to_goals,
)
from tests.kit.cases import cases

INFO = EnvironmentInfo(
    gripper=(0, 1, 2),
    object=(3, 4, 5),
    support=Support(low=(0.0, 0.0), high=(1.0, 1.0), rest_height=0.4),
)
REST = 0.4
AWAY = (0.0, 0.0, 0.9)


def episode(gripper, places):  # one episode [1, T + 1, 6]; one gripper position stands for all
    gripper = np.broadcast_to(np.asarray(gripper, np.float32), (len(places), 3))
    return np.concatenate([gripper, np.asarray(places, np.float32)], axis=1)[None]


def metrics_of(gripper, places, length=None):
    length = np.array([len(places) - 1 if length is None else length])
    values = behaviour_metrics(episode(gripper, places), length, INFO)
    return {name: float(value[0]) for name, value in values.items()}


def path(*xs, y=0.5, z=REST):
    return [(x, y, z) for x in xs]


def test_a_shift_is_the_way_from_the_first_to_the_last_valid_position_and_its_length_counts():
    # 0.3 in x and 0.4 down is 0.5; the way there and back in between does not count.
    states = episode(AWAY, [(0.2, 0.5, 0.4), (0.9, 0.5, 0.4), (0.5, 0.5, 0.0)])
    both, length = np.concatenate([states, states]), np.array([2, 1])
    found = shifts(both, length, INFO)
    np.testing.assert_allclose(found, [[0.3, 0.0, -0.4], [0.7, 0.0, 0.0]], atol=1e-6)
    displacement = behaviour_metrics(both, length, INFO)["object_displacement_m"]
    np.testing.assert_allclose(displacement, [0.5, 0.7], rtol=1e-6)
    for end, moved in ((0.24, 0.0), (0.26, 1.0)):  # beyond five centimetres
        assert metrics_of(AWAY, path(0.2, end))["object_moved"] == moved
    assert shifts(states, np.array([2]), lookup("FetchReach-v4")) is None


@cases(
    ("gripper", "last", "kept"),
    (AWAY, (0.5, 0.5, 0.4), 1.0),
    (AWAY, (1.01, 0.5, 0.4), 0.0),  # beside the table
    (AWAY, (0.5, 0.5, 0.37), 0.0),  # below its surface
    (AWAY, (0.5, 0.5, 0.6), 0.0),  # in the air, thrown
    ((0.5, 0.5, 0.64), (0.5, 0.5, 0.6), 1.0),  # held, 4 cm below the gripper
    ((0.5, 0.5, 0.66), (0.5, 0.5, 0.6), 0.0),  # 6 cm is too far to hold
    ((1.2, 0.5, 0.6), (1.2, 0.5, 0.6), 1.0),  # held beside the table
    ((1.2, 0.5, 0.4), (1.2, 0.5, 0.4), 0.0),  # at table height it is not raised
)
def test_an_object_ends_on_its_table_or_held(gripper, last, kept):
    assert metrics_of(gripper, [(0.5, 0.5, 0.4), last])["object_on_support"] == kept


@cases(
    ("gripper", "places", "metres"),
    # together 0.04; the object outruns the gripper, 0.04 against 0.01, and 0.03 apart is more
    # than half of 0.04; together again 0.02
    ((0.15, 0.19, 0.20, 0.22), (0.20, 0.24, 0.28, 0.30), 0.06),
    ((0.1, 0.13), (0.15, 0.19), 0.04),  # 0.01 apart is at most half of 0.04
    ((0.1, 0.14), (0.21, 0.25), 0.0),  # 0.11 from each other throughout
    ((0.1, 0.14), (0.19, 0.245), 0.0),  # 0.09 before and 0.105 after the step
    ((0.1, 0.155), (0.205, 0.245), 0.0),  # 0.105 before and 0.09 after it
)
def test_comotion_is_the_path_with_a_gripper_within_ten_centimetres(gripper, places, metres):
    assert metrics_of(path(*gripper), path(*places))["object_comotion_m"] == pytest.approx(metres)


def test_comotion_of_an_episode_that_loses_the_object_is_nothing():
    places = [(0.9, 0.5, 0.4), (0.94, 0.5, 0.4), (0.98, 0.5, 0.2)]
    gripper = path(0.85, 0.89, 0.89)
    assert metrics_of(gripper, places)["object_comotion_m"] == 0.0
    assert metrics_of(gripper, places, length=1)["object_comotion_m"] == pytest.approx(0.04)


@cases(
    ("high_steps", "height", "gripper", "length", "lifted"),
    (10, 0.46, 0.46, 12, 1.0),
    (9, 0.46, 0.46, 11, 0.0),
    (10, 0.445, 0.445, 12, 0.0),
    (10, 0.5, 0.54, 12, 1.0),
    (10, 0.5, 0.56, 12, 0.0),  # the gripper is 6 cm away
    (10, 0.5, 0.5, 11, 0.0),  # the last state lies after the end
)
def test_a_lift_is_10_steps_over_5_cm_near_the_gripper(high_steps, height, gripper, length, lifted):
    places = [(0.5, 0.5, 0.4)] * 3 + [(0.5, 0.5, height)] * high_steps
    assert metrics_of((0.5, 0.5, gripper), places, length)["object_lift"] == lifted


def test_cells_of_all_episodes_count_once_and_only_on_the_support():
    # x 0.01 and 0.04 share cell 0; 0.06 is cell 1; 0.5 in the air and 1.2 beside do not count.
    places = [*path(0.01, 0.04, 0.06), (0.5, 0.5, 0.5), (1.2, 0.5, 0.4)]
    states = episode(AWAY, places)
    assert visited_cells(states, np.array([4]), INFO) == {(0, 10), (1, 10)}
    assert visited_cells(states, np.array([1]), INFO) == {(0, 10)}
    both = np.concatenate([states, episode(AWAY, path(0.52, 0.52, 0.61, 0.61, 0.61))])
    assert {x for x, _ in visited_cells(both, np.array([1, 4]), INFO)} == {0, 10, 12}


def test_goals_come_nearer_and_move_before_any_success():
    desired = np.array([[3.0, 4.0], [0.0, 5.0], [5.0, 0.0]], np.float32)
    achieved = np.zeros((3, 4, 2), np.float32)
    achieved[0, 1:] = [3.0, 0.0]  # and ends 4 from its goal
    achieved[1, 1] = [0.0, 0.6]  # moved and went back
    achieved[2, 1:] = [0.4, 0.0]  # less than a tenth of 5
    assert ways_to_goals(achieved, desired) == pytest.approx(
        {"eval/goal_distance": (4.0 + 5.0 + 4.6) / 3, "eval/goal_moved_rate": 2 / 3}
    )


def covered(*episodes, length=None):
    """Coverage of episodes of pairs of gripper and places, without the prefix of its names."""
    states = np.concatenate([episode(*one) for one in episodes])
    lengths = np.full(len(states), states.shape[1] - 1 if length is None else length)
    found = coverage(states, lengths, INFO)
    return {name.removeprefix("coverage/"): value for name, value in found.items()}


def test_coverage_counts_what_kept_episodes_did():
    # From the start 0.06 and 0.12 are cells 1 and 2 in x, and -0.2 is cell -4 in y. Of three
    # episodes one ends on the floor: it has cells of 10 cm alone.
    along = path(0.52, 0.58, 0.64)
    across = [(0.52, y, REST) for y in (0.52, 0.52, 0.32)]
    lost = [(0.92, 0.52, REST), (0.92, 0.52, REST), (1.24, 0.52, 0.0)]
    assert covered((AWAY, along), (AWAY, across), (AWAY, lost)) == pytest.approx(
        {
            "kept_rate": 2 / 3,
            "moved_and_kept_rate": 2 / 3,
            "displacement_cells": 4.0,  # (0, 0), (1, 0), (2, 0), (0, -4)
            "direction_entropy": 1 / 3,  # log 2 / log 8
            "object_cells": 5.0,  # (5, 5), (6, 5), (5, 3), (9, 5), (12, 5)
        }
    )


@cases(
    ("gripper", "places", "kept", "brought", "cells"),
    (AWAY, path(0.52, 0.53), 1, 0, 1),  # to the nearest cell
    (AWAY, path(0.52, 0.61, y=0.98), 1, 1, 2),
    (AWAY, [(0.52, 0.5, REST), (0.62, 0.5, 0.5)], 1, 1, 2),  # thrown, and over the table
    (AWAY, [(0.52, 0.5, REST), (1.12, 0.5, 0.5)], 1, 0, 1),  # thrown beyond it
    ((1.12, 0.5, 0.5), [(0.52, 0.5, REST), (1.12, 0.5, 0.5)], 1, 1, 2),  # held there
    (AWAY, [(0.52, 0.5, REST), (0.62, 0.5, 0.37)], 0, 0, 0),  # below the surface
    (AWAY, [(0.52, 0.5, REST), (0.62, 0.5, 0.37), (0.72, 0.5, REST)], 1, 1, 2),
)
def test_states_count_over_the_support_and_where_it_is_held(gripper, places, kept, brought, cells):
    found = covered((gripper, places))
    names = ("kept_rate", "moved_and_kept_rate", "displacement_cells")
    assert [found[name] for name in names] == [kept, brought, cells]


@cases(
    ("degrees", "entropy"),
    (range(10, 360, 45), 1.0),
    ((1, 20, 44, -350), 0.0),  # one sector, which begins at the x axis
    ((181, -170, 91, 100), 1 / 3),
    ((10, 190, 190, 190), (np.log(4) - 0.75 * np.log(3)) / np.log(8)),
)
def test_directions_are_spread_over_eight_sectors(degrees, entropy):
    angles = np.radians(list(degrees))
    ends = [(0.5 + 0.2 * np.cos(a), 0.5 + 0.2 * np.sin(a), REST) for a in angles]
    still = (AWAY, [(0.5, 0.5, REST), (0.52, 0.5, REST)])  # 2 cm are no direction
    found = covered(*((AWAY, [(0.5, 0.5, REST), end]) for end in ends), still)
    assert found["direction_entropy"] == pytest.approx(entropy, abs=1e-9)
    assert found["moved_and_kept_rate"] == pytest.approx(len(ends) / (len(ends) + 1))


def test_what_lies_beyond_an_episode_is_not_covered():
    places = [(0.52, 0.5, REST), (0.62, 0.5, REST), (0.92, 0.5, 0.0)]
    assert covered((AWAY, places), length=1) == covered((AWAY, places[:2]))
    assert covered((AWAY, places), length=1)["kept_rate"] == 1.0


def test_support_is_lost_in_the_first_state_below_or_beside_it_unless_the_object_is_held():
    below = [(0.5, 0.5, 0.4), (0.5, 0.5, 0.4), (0.5, 0.5, 0.3), (0.5, 0.5, 0.3)]
    beside = [(0.9, 0.5, 0.4), (1.01, 0.5, 0.4), (1.1, 0.5, 0.3), (1.1, 0.5, 0.0)]
    thrown = [(0.5, 0.5, 0.4), (0.5, 0.5, 0.6), (0.5, 0.5, 0.6), (0.5, 0.5, 0.4)]
    states = np.concatenate([episode(AWAY, places) for places in (below, beside, thrown)])
    assert support_lost_at(states, np.array([3, 3, 3]), INFO).tolist() == [2, 1, 4]
    assert support_lost_at(states, np.array([1, 3, 2]), INFO).tolist() == [2, 1, 3]
    places = [(0.9, 0.5, 0.5), (1.1, 0.5, 0.5)]
    assert support_lost_at(episode(places, places), np.array([1]), INFO).tolist() == [2]
    assert support_lost_at(episode(AWAY, places), np.array([1]), INFO).tolist() == [1]


def test_without_an_object_nothing_is_measured():
    states, length = np.zeros((2, 4, 10), np.float32), np.array([3, 2])
    info = lookup("FetchReach-v4")
    assert behaviour_metrics(states, length, info) == {}
    assert (summarize(states, length, info), coverage(states, length, info)) == ({}, {})
    assert visited_cells(states, length, info) == set()
    assert support_lost_at(states, length, info).tolist() == [4, 3]


def test_a_rotation_is_the_angle_from_the_first_to_the_last_valid_orientation():
    # by 60 degrees about x, then by 180 about z: cos 30 = 0.866, and q is the same as -q
    turns = np.float32([[[1, 0, 0, 0], [np.sqrt(3.0) / 2.0, 0.5, 0, 0], [0, 0, 0, -1]]])
    info = dataclasses.replace(INFO, orientation=(0, 1, 2, 3))
    states = np.concatenate([turns, -2.0 * turns, turns])
    found = rotation(states, np.array([1, 1, 2]), info)
    np.testing.assert_allclose(found, [np.pi / 3, np.pi / 3, np.pi], rtol=1e-3)
    assert rotation(states, np.array([1, 1, 2]), INFO) is None
    assert lookup("HandManipulateBlock-v1").orientation == (57, 58, 59, 60)


def test_without_support_or_gripper_only_what_applies_is_measured():
    states, length = episode(AWAY, path(0.2, 0.3)), np.array([1])
    hand = dataclasses.replace(INFO, support=None, gripper=None)
    assert set(behaviour_metrics(states, length, hand)) == {"object_displacement_m", "object_moved"}
    names = {"displacement_cells", "direction_entropy", "object_cells"}
    assert set(coverage(states, length, hand)) == {f"coverage/{name}" for name in names}
    no_gripper = dataclasses.replace(INFO, gripper=None)
    assert "object_on_support" in behaviour_metrics(states, length, no_gripper)
    assert "object_lift" not in behaviour_metrics(states, length, no_gripper)
    assert coverage(states, length, no_gripper)["coverage/kept_rate"] == 1.0


PLANE = EnvironmentInfo(gripper=(0, 1), object=(2, 3))
LINE = EnvironmentInfo(gripper=(0,), object=(1,))


def flat(gripper, place):
    """One episode [1, T + 1, D + D] of places of gripper and object, a row a state."""
    return np.float32([[[*one, *other] for one, other in zip(gripper, place, strict=True)]])


def test_a_plane_has_all_that_needs_no_height_and_a_path_together_wherever_the_gripper_is():
    # together 0.03 in x, then 0.04 in y though 0.3 apart; the object alone 0.5 does not count
    gripper = [(0.0, 0.0), (0.03, 0.0), (0.03, 0.04), (0.03, 0.04)]
    place = [(0.31, 0.0), (0.34, 0.0), (0.34, 0.04), (0.34, 0.54)]
    found = summarize(flat(gripper, place), np.array([3]), PLANE)
    assert found == pytest.approx(
        {
            "eval/object_displacement_m": np.hypot(0.03, 0.54),
            "eval/object_moved_rate": 1.0,
            "eval/object_comotion_m": 0.07,
            "eval/object_coverage": 2.0,  # (6, 0) and (6, 10)
        }
    )
    cut = summarize(flat(gripper, place), np.array([1]), PLANE)
    assert cut["eval/object_comotion_m"] == pytest.approx(0.03)


def test_a_plane_is_covered_without_shares_of_what_is_kept():
    # from the start cells (0, 0) and (2, 0), and (0, -3); ways to the right and down
    rows = [flat([(0, 0)] * 2, [(0.0, 0.0), end]) for end in ((0.1, 0.01), (0.0, -0.15))]
    found = coverage(np.concatenate(rows), np.array([1, 1]), PLANE)
    assert found == pytest.approx(
        {
            "coverage/displacement_cells": 3.0,
            "coverage/direction_entropy": 1 / 3,  # log 2 / log 8
            "coverage/object_cells": 3.0,  # (0, 0), (1, 0), (0, -2)
        }
    )


def test_a_line_is_measured_as_a_plane_is_but_for_directions():
    states, length = flat([(0.0,), (0.2,), (0.2,)], [(1.01,), (1.21,), (1.51,)]), np.array([2])
    assert summarize(states, length, LINE) == pytest.approx(
        {
            "eval/object_displacement_m": 0.5,
            "eval/object_moved_rate": 1.0,
            "eval/object_comotion_m": 0.2,
            "eval/object_coverage": 3.0,
        }
    )
    assert visited_cells(states, length, LINE) == {(20, 0), (24, 0), (30, 0)}
    assert coverage(states, length, LINE) == {
        "coverage/displacement_cells": 3.0,
        "coverage/object_cells": 3.0,
    }
    assert first_contact(states, length, LINE).tolist() == [1]
    assert first_contact(states[:, 1:], np.array([1]), LINE).tolist() == [1]


def test_nearness_is_unknown_in_an_environments_own_unit():
    found = behaviour_metrics(flat([(0.0,), (20.0,)], [(100.0,), (120.0,)]), np.array([1]), LINE)
    assert found["object_comotion_m"].tolist() == [20.0]
