import random
import string

import gymnasium
import gymnasium_robotics
import pytest

from music_tf.config.names import ANT_MAZE, FETCH, HAND, KNOWN, POINT_MAZE, check_env_id, nearest
from music_tf.errors import UsageError


@pytest.fixture(scope="module")
def registered():
    gymnasium.register_envs(gymnasium_robotics)
    return set(gymnasium.registry)


def test_every_listed_robot_task_is_registered(registered):
    assert set((*FETCH, *HAND, *POINT_MAZE, *ANT_MAZE)) - registered == set()


def test_no_goal_task_of_the_newest_version_is_forgotten(registered):
    families = ("Fetch", "HandReach", "HandManipulate", "PointMaze", "AntMaze")
    newest = {}
    for env_id in registered:
        name, _, version = env_id.rpartition("-v")
        if name.startswith(families):
            newest[name] = max(newest.get(name, 0), int(version))
    assert {f"{name}-v{version}" for name, version in newest.items()} - set(KNOWN) == set()


@pytest.mark.parametrize("env_id", ["FetchPush-v4", "music_tf/PointPush-v0", "mine.envs:Task-v0"])
def test_known_ids_and_those_with_a_module_pass(env_id):
    assert check_env_id(env_id) == env_id


@pytest.mark.parametrize(
    "env_id", ["", "Walker", ":Task-v0", "mine:", "a b:Task-v0", "../x:Task-v0", "os;x:T", "\ud800"]
)
def test_other_ids_are_refused_and_told_how_one_s_own_goes_in(env_id):
    with pytest.raises(UsageError, match="module:Id"):
        check_env_id(env_id)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("FetchPush-v3", "FetchPush-v4"),
        ("FetchPush-v1", "FetchPush-v4"),
        ("fetchpush-v4", "FetchPush-v4"),
        ("FetchPsuh-v4", "FetchPush-v4"),
        ("PointPush-v0", "music_tf/PointPush-v0"),
        ("HandReach-v0", "HandReach-v3"),
    ],
)
def test_a_refusal_names_what_was_meant(typed, meant):
    with pytest.raises(UsageError, match=f"did you mean {meant}\\?"):
        check_env_id(typed)


def test_one_edit_away_from_a_name_the_name_is_found():
    generator = random.Random(0)
    wrong = []
    for env_id in (*FETCH, *HAND[::9], *POINT_MAZE[::5]):
        name = env_id[:-3]
        place = generator.randrange(len(name))
        typed = f"{name[:place]}{generator.choice(string.ascii_letters)}{name[place + 1 :]}"
        if nearest(f"{typed}{env_id[-3:]}", KNOWN) != env_id:
            wrong.append(typed)
    assert len(wrong) <= 1
