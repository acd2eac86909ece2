import re

import pytest

from music_tf.config.command import parse_train
from music_tf.config.settings import EnvConfig
from music_tf.config.world import World
from music_tf.errors import UsageError
from music_tf.tools.check_env import check_environment, propose_world
from tests.kit.counting import FORGETFUL
from tests.kit.liberties import Quits
from tests.kit.odd import ODD
from tests.kit.tidying import COLUMNS, TIDYING

NAMES = [
    "goal keys",
    "actions",
    "episode length",
    "observations",
    "rewards",
    "fresh arrays",
    "constant goal",
    "goal met",
    "goal apart",
    "reward",
    "other goal",
    "batched reward",
    "success",
    "corners",
    "reset",
    "settable goal",
    "world",
]


@pytest.mark.parametrize(
    "env_id", ["music_tf/PointPush-v0", "FetchReach-v4", "HandManipulatePen-v1"]
)
def test_a_good_environment_passes_every_check(env_id):
    checks = check_environment(env_id)
    assert [check.name for check in checks] == NAMES
    assert all(check.ok and check.detail and not check.cure for check in checks)


def test_the_odd_environment_is_good_as_long_as_it_has_no_fault(odd):
    assert all(check.ok for check in check_environment(ODD))


@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        ("nan", {"observations", "reset"}),
        ("dtype", {"observations"}),
        ("goal", {"constant goal", "goal met"}),
        ("wrong reward", {"reward"}),
        ("axis", {"batched reward", "reward"}),
        ("success", {"success"}),
        ("leftover", {"reset"}),
        ("exception", {"episode"}),
        ("reset", {"episode"}),
        ("reset alone", {"episode"}),
        ("four", {"episode"}),
    ],
)
def test_a_fault_fails_its_check_with_a_cure(odd, fault, failed):
    odd.fault = fault
    checks = check_environment(ODD)
    assert {check.name for check in checks if not check.ok} == failed
    assert all(check.cure for check in checks if not check.ok)


@pytest.mark.parametrize("fault", ["reset alone", "four"])
def test_what_reset_and_step_must_give_is_said_where_they_give_something_else(odd, fault):
    odd.fault = fault
    found = check_environment(ODD)[-1].detail
    assert "values to unpack (expected" in found
    assert "reset must give (observation, info), step (observation, reward, term" in found


@pytest.mark.parametrize(
    ("env_id", "name", "says"),
    [
        ("ShyOfCorners-v0", "corners", r"at \[-1. -1.\]: .*the joint is at its end"),
        ("OwnObservation-v0", "fresh arrays", "observation of step 0 changed when later steps"),
    ],
)
def test_liberties_with_actions_and_arrays_are_found(points, env_id, name, says):
    (found,) = [check for check in check_environment(env_id) if not check.ok]
    assert found.name == name
    assert re.search(says, found.detail)
    assert found.cure


@pytest.mark.parametrize(
    ("where", "failed"),
    [("step", {"episode"}), ("reset", {"episode"}), ("compute_reward", {"episode"})],
)
def test_an_environment_that_ends_the_process_is_a_finding(points, monkeypatch, where, failed):
    monkeypatch.setattr(Quits, "where", where)
    checks = check_environment("Quits-v0")
    assert {check.name for check in checks if not check.ok} == failed
    assert "SystemExit: 0" in checks[-1].detail


def test_a_reward_in_an_array_and_what_is_dropped_are_told(points):
    checks = {check.name: check for check in check_environment("PaysInArrays-v0")}
    assert checks["rewards"].detail.startswith("step 1: reward: expected a number, got shape (1,)")
    assert not checks["rewards"].ok
    (keys, *_) = check_environment("Touches-v0")
    assert keys.ok
    assert keys.detail.endswith("desired_goal; not learned from: touch")


def test_unbounded_actions_fail_before_anything_is_played(odd):
    odd.high = float("inf")
    checks = check_environment(ODD)
    assert [(check.name, check.ok) for check in checks] == [
        ("goal keys", True),
        ("actions", False),
        ("episode length", True),
    ]


def test_arguments_of_the_environment_change_what_is_checked():
    kwargs = EnvConfig(kwargs='{"reward_type": "dense"}')
    findings = [check_environment("FetchReach-v4", each) for each in (EnvConfig(), kwargs)]
    values = [found[NAMES.index("reward")].ok for found in findings]
    assert values == [True, True]


def test_a_task_without_goals_is_checked_for_what_it_has():
    checks = check_environment("Pendulum-v1")
    assert [check.name for check in checks] == [
        *("goal keys", "actions", "episode length", "observations", "rewards"),
        *("fresh arrays", "corners", "reset", "world"),
    ]
    assert all(check.ok for check in checks)
    assert "no goals" in checks[0].detail
    assert [check.name for check in check_environment("CartPole-v1") if not check.ok] == ["actions"]


def test_an_environment_that_does_not_repeat_itself_is_told_what_cures_it():
    (check,) = [check for check in check_environment(FORGETFUL) if not check.ok]
    assert check.name == "reset"
    assert "differ from step 0 on" in check.detail
    assert "--env.remake True" in check.cure


GRIPPER_AND_BLOCK = {"agent": (0, 1, 2), "surrounding": (3, 4, 5)}


@pytest.mark.parametrize(
    ("env_id", "world"),
    [
        (TIDYING, {name: COLUMNS[name] for name in ("agent", "surrounding", "object", "gripper")}),
        ("FetchPush-v4", {**GRIPPER_AND_BLOCK, "object": (3, 4, 5), "gripper": (0, 1, 2)}),
        ("music_tf/PointReach-v0", {}),
        ("Pendulum-v1", {}),
    ],
)
def test_a_world_is_guessed_from_what_moves_only_when_it_is_touched(env_id, world):
    assert propose_world(env_id) == World(**world)


def test_it_is_shown_as_a_line_to_type():
    (check,) = [check for check in check_environment(TIDYING) if check.name == "world"]
    words = check.detail.split()
    assert words[:2] == ["music-tf", "train"]
    assert parse_train(words[2:]).config.world.object == COLUMNS["object"]
    assert [check.name for check in check_environment(TIDYING) if not check.ok] == []


def test_no_world_is_proposed_where_it_is_known_that_nothing_can_be_moved():
    (check,) = [check for check in check_environment("FetchReach-v4") if check.name == "world"]
    assert check.ok
    assert check.detail.startswith("There is no object, so MUSIC has no surroundings")


def test_an_unknown_id_is_a_usage_error():
    with pytest.raises(UsageError, match="did you mean"):
        check_environment("FetchPushh-v4")
