"""Columns are told apart by playing: right or "cannot tell", and right where an object is."""

import json

import numpy as np
import pytest

from music_tf.config.settings import EnvConfig
from music_tf.envs.columns import Certainty, look
from music_tf.envs.kinds import Kind, differences
from music_tf.envs.lockstep import LockstepEnvs
from music_tf.envs.twins import Player, unwrapped
from music_tf.errors import UsageError
from tests.kit.arm import ARM, ARM_WITH_GOALS, DISC, TIP
from tests.kit.cases import cases
from tests.kit.counting import COUNTING, FORGETFUL
from tests.kit.hanging import HANGING
from tests.kit.layouts import LAYOUT, OTHERS, columns, random_groups
from tests.kit.odd import ODD

FETCH = ((0, 1, 2), (3, 4, 5))


def found_in(env_id, **arguments):
    envs = LockstepEnvs(env_id, 1, EnvConfig(kwargs=json.dumps(arguments)))
    envs.mute_faults()
    try:
        return look(envs)
    finally:
        envs.close()


def split_of(found):
    names = ("agent", "surrounding")
    return tuple(found.proposed[name].columns for name in names if name in found.proposed)


@pytest.mark.parametrize("env_id", [ARM, ARM_WITH_GOALS])
def test_of_an_arm_the_tip_and_the_disc_are_proposed_with_reasons(env_id):
    found = found_in(env_id)
    assert found.verdict == Certainty.SURE
    assert {name: one.columns for name, one in found.proposed.items()} == {
        **{"agent": TIP, "gripper": TIP},
        **{"surrounding": DISC, "object": DISC, "descriptor": DISC},
    }
    assert all(one.reason for one in found.proposed.values())
    assert set(found.relations) == {0, 1, 2, 3}


@pytest.mark.thorough
@cases(
    ("groups", "habits"),
    (["disc", "clock", "speed", "disc_speed", "action", "point"], {}),
    ([*OTHERS[:4], "disc", "speed", "disc_speed", "action", "point"], {}),
    (["point", "disc"], {"apart": 0.9}),
    (["point", "disc", "noise"], {}),
    (["point", "disc", "fresh_noise"], {}),
    (["point", "constant", "disc", "mover"], {}),
    ids=["object first", "second disc", "seldom touched", "noise", "fresh noise", "mover"],
)
def test_an_object_is_found(groups, habits):
    found = found_in(LAYOUT, groups=groups, **habits)
    robot, thing = split_of(found)
    assert robot == columns(groups, "point")
    discs = {columns(groups, name) for name in ("disc", "second") if name in groups}
    assert {thing, *found.others} == discs


def test_an_object_is_found_on_a_line():
    assert split_of(found_in(LAYOUT, groups=["block", "slider"], axes=1)) == ((1,), (0,))


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(15))
def test_in_layouts_drawn_at_random_no_split_is_wrong(number):
    groups = random_groups(np.random.default_rng([20, number]))
    robot, thing = split_of(found_in(LAYOUT, groups=groups))
    assert robot == columns(groups, "point")
    assert thing in [columns(groups, name) for name in ("disc", "second") if name in groups]


@cases(
    ("groups", "habits", "verdict"),
    (["mixed"], {}, Certainty.CANNOT_TELL),
    (["point", "far_unit"], {}, Certainty.CANNOT_TELL),
    (["point", "goal"], {}, Certainty.CANNOT_TELL),
    (["point", "disc"], {"late": 3}, Certainty.CANNOT_TELL),
    (["point", "disc"], {"unseeded": True}, Certainty.CANNOT_TELL),
    (["constant", "goal"], {}, Certainty.CANNOT_TELL),
    (["point", "difference"], {}, Certainty.NO_OBJECT),
    (["egocentric"], {}, Certainty.NO_OBJECT),
    (["point", "lamp"], {}, Certainty.CANNOT_TELL),
    (["point", "disc"], {"grasped": True}, Certainty.NO_OBJECT),
    ids=[
        *("one by one", "other unit", "goal alone", "late", "no seed", "nothing answers"),
        *("relative alone", "egocentric", "lamp", "grasped"),
    ],
)
def test_where_nothing_shows_an_object_none_is_proposed(groups, habits, verdict):
    found = found_in(LAYOUT, groups=groups, **habits)
    assert found.verdict == verdict
    assert found.why
    assert split_of(found) == ()


@cases(
    ("groups", "relations"),
    (
        ["point_before", "disc_before", "disc", "point", "point_again"],
        {0: "6 a step before", 8: "6 again", 9: "7 again"},
    ),
    (["point_long_before", "point_before", "point", "disc"], {}),  # a stack of frames
)
def test_what_is_observed_again_or_a_step_later_is_no_place_of_its_own(groups, relations):
    found = found_in(LAYOUT, groups=groups)
    assert split_of(found) == (columns(groups, "point"), columns(groups, "disc"))
    assert relations.items() <= found.relations.items()
    assert found.others == []


def test_what_an_action_and_its_opposite_push_alike_is_held():
    found = found_in("tests.kit.layouts:Palm-v0")
    assert (found.verdict, split_of(found)) == (Certainty.LIKELY, ((0, 1, 2), (3, 4, 5)))


@cases(
    ("env_id", "descriptor"),
    ("Pendulum-v1", ("observation",)),
    ("MountainCarContinuous-v0", (0,)),
    ("Hopper-v5", ("observation",)),
    ("HalfCheetah-v5", ("observation",)),
    ("PointMaze_UMaze-v3", (0, 1)),
    ("music_tf/UnitBox-v0", (0, 1)),
    pytest.param("AntMaze_UMaze-v5", ("achieved_goal",), marks=pytest.mark.slow),
)
def test_no_object_is_proposed_where_there_is_none(env_id, descriptor):
    found = found_in(env_id)
    assert found.verdict == Certainty.NO_OBJECT
    assert {name: one.columns for name, one in found.proposed.items()} == {"descriptor": descriptor}


@pytest.mark.thorough
@cases(
    ("env_id", "split"),
    ("music_tf/PointPush-v0", ((0, 1), (3, 4))),
    ("FetchPush-v4", FETCH),
    pytest.param("FetchPickAndPlace-v4", FETCH, marks=pytest.mark.slow),
    pytest.param(
        "HandManipulateBlock-v1", (tuple(range(24)), tuple(range(54, 61))), marks=pytest.mark.slow
    ),
)
def test_objects_that_are_known_are_found_by_playing(env_id, split):
    assert split_of(found_in(env_id)) == split


@pytest.mark.slow
def test_the_block_of_panda_is_found():
    pytest.importorskip("panda_gym", reason="the extra 'panda' is not installed")
    assert split_of(found_in("panda_gym:PandaPush-v3")) == ((0, 1, 2), (6, 7, 8))


def test_twins_are_the_same_until_they_part_and_untouched_columns_after_it():
    envs = LockstepEnvs(LAYOUT, 1, EnvConfig(kwargs='{"groups": ["point", "disc"], "apart": 1.3}'))
    player = Player(envs)
    for number in range(4):
        player.part(number)
    parted = [one for one in player.branches if one.twin is not None]
    assert [one.at for one in parted] == [0, 0, 6, 6, 12, 12, 25, 25]
    for one in parted:
        np.testing.assert_array_equal(one.rows[: one.at + 1], one.twin[: one.at + 1])
        assert (one.difference_from_twin()[0, :2] != 0.0).any()
        np.testing.assert_array_equal(one.difference_from_twin()[0, 2:], 0.0)
    first, opposite = parted[:2]
    np.testing.assert_array_equal(first.actions[:10], -opposite.actions[:10])
    envs.close()


@cases(
    ("habits", "places", "speeds"),
    ({"axes": 1, "shown": [0, 2, 3, 4, 6, 7]}, (0, 1, 2), {3, 4, 5}),
    ({"axes": 1, "shown": [0, 2, 3, 4, 6, 7], "unit": 1e-6}, (0, 1, 2), {3, 4, 5}),
    ({"axes": 1, "shown": [0, 2], "rope": 2.0}, (0, 1), set()),
    ({"rope": 2.0}, ("observation",), {4, 5, 6, 7}),
    ({"rope": 2.0, "shown": [0, 1, 2, 3]}, ("observation",), set()),
    ({"rope": 0.2, "damping": 2.0, "drag": 0.3}, ("observation",), {4, 5, 6, 7}),
    ids=["crane", "small unit", "places alone", "drone", "its places", "short rope"],
)
def test_what_hangs_on_a_rope_and_what_drags_it_are_places(habits, places, speeds):
    found = found_in(HANGING, **habits)
    assert found.proposed["descriptor"].columns == places
    assert set(found.relations) == speeds


def test_an_angle_that_wraps_goes_on():
    angle = np.linspace(0.0, 9.0, 30)
    rows = np.stack([np.arctan2(np.sin(angle), np.cos(angle)), 4.0 * (angle > 5.0)], axis=1)
    np.testing.assert_allclose(unwrapped(rows.copy())[:, 0], angle)
    np.testing.assert_array_equal(unwrapped(rows.copy())[:, 1], rows[:, 1])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_difference_is_known_by_the_thing_and_the_place(sign):
    thing, place, other = np.random.default_rng(0).normal(size=(3, 40))
    states = np.stack([thing, place, other, sign * (thing - place)], axis=1)
    kinds = [Kind.OBJECT, Kind.ROBOT, Kind.ROBOT, Kind.ROBOT]
    found = differences(states, kinds, states.std(axis=0))
    # thing = place + (thing - place): either of the two may be the place
    assert found == {(0, 1): 3} | ({(0, 3): 1} if sign > 0.0 else {})


def test_a_difference_from_the_gripper_is_told():
    found = found_in("music_tf/PointPush-v0")
    assert found.relations == {6: "difference of 3 and 0", 7: "difference of 4 and 1"}


def test_episodes_that_are_too_short_are_refused_with_what_came_or_broke(odd):
    with pytest.raises(UsageError, match="expected episodes of more than 5 steps, got 4"):
        found_in(LAYOUT, groups=["point", "disc"], ends=4)
    odd.fault = "exception"
    with pytest.raises(UsageError, match=r"more than 5 steps, got 2; .*the motor burns"):
        found_in(ODD)


@cases(
    ("env_id", "kind"), (COUNTING, Kind.MOVER), (FORGETFUL, Kind.NOISE), ("Far-v0", Kind.ROUNDED)
)
def test_what_no_action_moves_is_said(points, env_id, kind):
    found = found_in(env_id)
    assert kind in found.kinds
    assert Kind.ROBOT not in found.kinds
    assert (found.verdict, found.proposed) == (Certainty.CANNOT_TELL, {})
