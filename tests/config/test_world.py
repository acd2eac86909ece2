import dataclasses
import json
import re

import numpy as np
import pytest

import music_tf
from music_tf import recipes
from music_tf.config import world as module
from music_tf.config.world import World, load_function, register_world, registered_world
from music_tf.errors import UsageError
from music_tf.reading.stored import config_from_json, config_to_json
from tests.kit import tidying
from tests.kit.cases import cases


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    monkeypatch.setattr(module, "_REGISTERED", {})
    monkeypatch.setattr(module, "_TRUSTED", set())


def test_python_may_give_arrays_lists_and_functions():
    given = music_tf.World(
        agent=np.arange(3),
        surrounding=[3, 4],
        descriptor=tidying.disc,
        extras={"where": tidying.disc, "reward_of_mine": None, "named": "my_world:height"},
    )
    assert (given.agent, given.surrounding) == ((0, 1, 2), (3, 4))
    assert given.descriptor == ("tests.kit.tidying:disc",)
    assert given.extras == (
        "where=tests.kit.tidying:disc",
        "reward_of_mine",
        "named=my_world:height",
    )
    assert load_function("tests.kit.tidying:disc", "world.descriptor") is tidying.disc
    assert World(descriptor="achieved_goal").descriptor == ("achieved_goal",)


@cases(
    ("given", "part"),
    ({"agent": 3}, "world.agent: expected columns or names, got 3"),
    ({"agent": [0.5], "surrounding": [1]}, "world.agent: expected whole numbers"),
    ({"object": None}, "world.object: expected columns or names, got None"),
    (
        {"object": (3, 4, 5, 6)},
        "world.object: expected whole numbers, one, two or three different ones: x, x and y, "
        "or x, y and z, got (3, 4, 5, 6)",
    ),
    ({"gripper": (3, 3)}, "world.gripper: expected whole numbers, one, two or three different"),
    ({"gripper": [1], "object": [1]}, "world.object: expected other columns than world.gripper"),
    ({"arm": (0, 1)}, "world.arm: expected whole numbers, three different ones"),
    ({"support": (0, 0, 1, 1, "a")}, "world.support: expected numbers, LOW_X"),
    ({"support": (0, 0, 1, 1, 0, -1)}, "world.support: expected numbers, LOW_X"),
    ({"descriptor": lambda environment: 0}, "another process can import"),
)
def test_what_no_world_is_made_of_is_refused(given, part):
    with pytest.raises(UsageError, match=re.escape(part)):
        World(**given)


def test_a_world_is_stored_as_numbers_and_names():
    given = World(**tidying.COLUMNS, descriptor=tidying.disc, extras=("weight",))
    config = dataclasses.replace(recipes.resolve("ddpg_music"), world=given)
    text = json.dumps(config_to_json(config))
    stored = json.loads(text)["world"]
    assert (stored["object"], stored["descriptor"]) == ([2, 3, 4], ["tests.kit.tidying:disc"])
    assert config_from_json(json.loads(text), "ddpg_music") == (config, ())
    columns = dataclasses.replace(config, world=World(descriptor=(3, 4)))
    stored = json.loads(json.dumps(config_to_json(columns)))
    assert config_from_json(stored, "ddpg_music")[0].world.descriptor == (3, 4)
    stored["world"]["descriptor"] = [True]
    with pytest.raises(UsageError, match=r"world\.descriptor: expected"):
        config_from_json(stored, "ddpg_music")


def test_what_a_run_says_counts_before_what_is_registered():
    register_world("package:Mine-v0", World(agent=(0,), surrounding=(1,), object=(1, 2, 3)))
    typed = World(agent=(4,), surrounding=(5,))
    assert typed.over(registered_world("Mine-v0")) == World(
        agent=(4,), surrounding=(5,), object=(1, 2, 3)
    )
    assert registered_world("Other-v0") == World()
    with pytest.raises(UsageError, match=r"expected a music_tf\.World, got 3"):
        register_world("Mine-v0", 3)


@cases(
    ("word", "part"),
    ("tests.kit.tidying:dsic", "did you mean disc?"),
    ("tests.kit.tidying:COLUMNS", "expected a function"),
    ("tests.kit.nowhere:disc", "cannot be imported: ModuleNotFoundError"),
)
def test_a_function_that_is_not_there_is_refused(word, part, monkeypatch):
    with pytest.raises(UsageError, match="--allow-import"):
        load_function(word, "world.descriptor")
    monkeypatch.setenv("MUSIC_TF_ALLOW_IMPORT", "tests.kit")  # as `trust([word])` does
    with pytest.raises(UsageError, match=re.escape(part)):
        load_function(word, "world.descriptor")
