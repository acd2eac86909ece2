import pytest

from music_tf.errors import UsageError
from music_tf.tools.check_env import check_environment
from tests.kit.odd import ODD

NAMES = [
    "goal keys",
    "actions",
    "episode length",
    "observations",
    "constant goal",
    "reward",
    "batched reward",
    "success",
    "reset",
    "settable goal",
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
        ("goal", {"constant goal"}),
        ("wrong reward", {"reward"}),
        ("axis", {"batched reward"}),
        ("success", {"success"}),
        ("leftover", {"reset"}),
        ("fixed goal", {"settable goal"}),
        ("exception", {"episode"}),
        ("reset", {"episode"}),
    ],
)
def test_a_fault_fails_its_check_with_a_cure(odd, fault, failed):
    odd.fault = fault
    checks = check_environment(ODD)
    assert {check.name for check in checks if not check.ok} == failed
    assert all(check.cure for check in checks if not check.ok)


def test_unbounded_actions_fail_before_anything_is_played(odd):
    odd.high = float("inf")
    checks = check_environment(ODD)
    assert [(check.name, check.ok) for check in checks] == [
        ("goal keys", True),
        ("actions", False),
        ("episode length", True),
    ]


def test_no_goal_environment_fails_the_first_check():
    (check,) = check_environment("CartPole-v1")
    assert (check.name, check.ok) == ("goal keys", False)


def test_an_unknown_id_is_a_usage_error():
    with pytest.raises(UsageError, match="did you mean"):
        check_environment("FetchPushh-v4")
