import pytest

from music_tf.config.names import edits, few, nearest, suggestion


def test_of_many_names_few_are_shown():
    assert [few("abcde"[:count]) for count in (0, 1, 3)] == ["", "a", "a, b, c"]
    assert few("abcde") == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("sac", "sac", 0),
        ("sac", "asc", 1),  # a swap of neighbours
        ("sac", "sc", 1),
        ("sac", "saac", 1),
        ("sac", "sbc", 1),
        ("kitten", "sitting", 3),
    ],
)
def test_edits_count_what_turns_one_text_into_the_other(first, second, distance):
    assert edits(first, second) == distance
    assert edits(second, first) == distance


def test_the_newest_version_is_the_nearest_of_equals():
    assert nearest("Task-v3", ["Task-v1", "Task-v4", "Task-v2"]) == "Task-v4"


def test_letter_case_alone_is_no_distance():
    assert nearest("SAC_HER", ["ddpg_her", "sac_her", "sac"]) == "sac_her"


def test_nothing_is_near_a_wholly_different_name():
    assert nearest("foo", ["goals", "updates"]) is None
    assert nearest("", ["goals"]) is None
    assert suggestion("foo", ["goals"]) == ""


def test_a_very_long_name_is_answered_at_once():
    assert nearest("x" * 100_000, ["goals", "updates"]) is None
