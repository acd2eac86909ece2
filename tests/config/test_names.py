import contextlib

import gymnasium
import gymnasium_robotics
import pytest

import music_tf.envs
from music_tf import recipes
from music_tf.cli import VERBS
from music_tf.config.fields import fields_of, show_option
from music_tf.config.names import (
    ANT_MAZE,
    DISCRETE,
    EPISODE_STEPS,
    FETCH,
    HAND,
    KNOWN,
    PANDA,
    POINT_MAZE,
    check_env_id,
    few,
    is_one_of,
    nearest,
    suggestion,
    without_module,
)
from music_tf.errors import UsageError
from tests.kit.cases import cases
from tests.kit.typos import typos


@pytest.mark.thorough
@cases(
    ("valid", "apart"),
    (recipes.names(), 6),
    (VERBS, 3),
    ([show_option(field.name) for field in fields_of(recipes.resolve("ddpg"))], 50),
    (KNOWN, 401),
    ids=["recipes", "verbs", "options", "environments"],
)
def test_the_nearest_name_is_right_for_nearly_all_typos(valid, apart):
    pairs = [pair for pair in typos(valid)][::apart]
    right = sum(nearest(typo, valid) == name for typo, name in pairs)
    assert len(pairs) > 100
    assert right >= 0.95 * len(pairs)


@cases(
    ("typed", "names", "meant"),
    ("Task-v3", ["Task-v1", "Task-v4", "Task-v2"], "Task-v4"),  # the newest of equals
    ("SAC_HER", ["ddpg_her", "sac_her", "sac"], "sac_her"),  # letter case is no distance
    ("foo", ["goals", "updates"], None),
    ("", ["goals"], None),
    ("x" * 100_000, ["goals", "updates"], None),
)
def test_the_nearest_is_the_newest_in_any_letter_case_and_may_be_none(typed, names, meant):
    assert nearest(typed, names) == meant
    assert suggestion(typed, names) == (f"\ndid you mean {meant}?" if meant else "")


def test_robot_tasks_are_those_that_are_registered_and_none_of_the_newest_is_forgotten():
    gymnasium.register_envs(gymnasium_robotics)
    registered = set(gymnasium.registry)
    assert set((*FETCH, *HAND, *POINT_MAZE, *ANT_MAZE)) - registered == set()
    families = ("Fetch", "HandReach", "HandManipulate", "PointMaze", "AntMaze")
    newest = {}
    for env_id in registered:
        name, _, version = env_id.rpartition("-v")
        if name.startswith(families):
            newest[name] = max(newest.get(name, 0), int(version))
    assert {f"{name}-v{version}" for name, version in newest.items()} - set(KNOWN) == set()
    assert set(DISCRETE) <= registered


def test_the_lengths_of_known_episodes_are_those_registered():
    gymnasium.register_envs(gymnasium_robotics)
    gymnasium.register_envs(music_tf.envs)
    found = {}
    for env_id in KNOWN:
        with contextlib.suppress(gymnasium.error.NameNotFound, gymnasium.error.NamespaceNotFound):
            found[env_id] = gymnasium.spec(without_module(env_id)).max_episode_steps
    assert found == {env_id: EPISODE_STEPS[env_id] for env_id in found}
    assert set(KNOWN) - set(found) <= set(PANDA)  # an extra
    assert set(EPISODE_STEPS) == set(KNOWN)


def test_an_id_is_known_in_any_version_and_from_any_module_and_few_of_many_are_shown():
    assert [few("abcde"[:count]) for count in (0, 1, 3)] == ["", "a", "a, b, c"]
    assert few("abcde") == "a, b, c and 2 more"
    assert is_one_of("FetchPush-v1", FETCH)
    assert is_one_of("mine.envs:FetchPushDense-v4", FETCH)
    assert is_one_of("PandaPush-v3", PANDA)
    assert not is_one_of("FetchPushMine-v4", FETCH)
    assert not is_one_of("", FETCH)


def test_ids_with_a_module_pass_and_others_are_refused_and_told_how_one_s_own_goes_in():
    for env_id in ("FetchPush-v4", "music_tf/PointPush-v0", "mine.envs:Task-v0"):
        assert check_env_id(env_id) == env_id
    for env_id in (
        "",
        "Walker",
        ":Task-v0",
        "mine:",
        "a b:Task-v0",
        "../x:T-v0",
        "os;x:T",
        "\ud800",
    ):
        with pytest.raises(UsageError, match="module:Id"):
            check_env_id(env_id)


CHOICES = {
    "CartPole-v1": "Pendulum-v1",
    "MountainCar-v0": "MountainCarContinuous-v0",
    "LunarLander-v2": "LunarLanderContinuous-v3",
}
MEANT = {
    "FetchPush-v1": "FetchPush-v4",
    "fetchpush-v4": "FetchPush-v4",
    "FetchPsuh-v4": "FetchPush-v4",
    "PointPush-v0": "music_tf/PointPush-v0",
    "HandReach-v0": "HandReach-v3",
    "PandaPush-v3": "panda_gym:PandaPush-v3",
    "AdroitHandPen-v1": "gymnasium_robotics:AdroitHandPen-v1",
}


@cases(
    ("typed", "told"),
    *((typed, f"continuous actions.*{typed}.*\nnearest: {n}$") for typed, n in CHOICES.items()),
    *((typed, f"did you mean {meant}\\?") for typed, meant in MEANT.items()),
)
def test_a_refusal_names_what_was_meant_or_that_its_actions_are_choices(typed, told):
    with pytest.raises(UsageError, match=told):
        check_env_id(typed)


@cases(
    ("typed", "meant"),
    ("ArmPush-v0", "users_arm:ArmPush-v0"),
    ("ArmPush-v1", "users_arm:ArmPush-v0"),
    ("me/Lift-v0", "users_arm:me/Lift-v3"),
    ("users_arm", "users_arm:ArmPush-v0"),
    ("users_arm.py", "users_arm:ArmPush-v0"),
)
def test_an_id_without_the_module_that_has_it_is_meant_with_it(typed, meant, tmp_path, monkeypatch):
    (tmp_path / "a_picture.py").write_bytes(b"\xff\xfe")
    (tmp_path / "a_script.py").write_text("train('ddpg', env_id='ArmPush-v1')\n")
    text = "register(\"ArmPush-v0\", Arm)\nregister(\n    id='me/Lift-v3', entry_point=Lift)\n"
    (tmp_path / "users_arm.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"\ndid you mean {meant}\\?\n"):
        check_env_id(typed)
