import dataclasses
import json

import mujoco
import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of, with_fields
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.reading.stored import (
    StoredRun,
    config_from_json,
    config_to_json,
    flatten,
    read_run,
    refuse_changes,
    run_to_json,
)
from tests.kit.cases import cases, every
from tests.kit.releases import EVERY_PRESET, RELEASED_ON

ENTRIES = '{"preset": "laptop", "arguments": [], "config": {}, "recipe": %s}'


def stored(recipe="sac"):
    return config_to_json(recipes.resolve(recipe))


@every(("recipe", "preset"), EVERY_PRESET)
def test_a_configuration_comes_back_from_strict_json(recipe, preset):
    config = recipes.resolve(recipe, preset, RELEASED_ON.get(preset, ""))
    text = json.dumps(config_to_json(config), allow_nan=False)
    again, missing = config_from_json(json.loads(text), recipe, preset=preset)
    assert (again, missing) == (config, ())
    assert type(again.agent) is type(config.agent)


OWN = """
from dataclasses import dataclass, replace
from typing import ClassVar

from music_tf.config.agents import SacConfig
from music_tf.config.terms import TermConfig
from music_tf.recipes.tasks import ddpg


@dataclass(frozen=True, kw_only=True)
class HeightConfig(TermConfig):
    name: ClassVar[str] = "height"
    term: ClassVar[str] = "somewhere:Height"
    top: float = 0.1
"""
PAYING = """

def own(preset, env_id):
    return replace(ddpg(preset, env_id), rewards={"height": %s})
"""
CANNOT_BE_READ = {
    "a class of another module": (
        "import lab_settings\n"
        + OWN.partition("@dataclass")[0]
        + PAYING % "lab_settings.HeightConfig()",
        "got HeightConfig of lab_settings\ndefine it at the top of my_own, or import it there: "
        "from lab_settings import HeightConfig",
    ),
    "a term of the program that is started": (
        OWN.replace("somewhere:", "__main__:") + PAYING % "HeightConfig()",
        "reward height: another process cannot import '__main__:Height'",
    ),
    "a value that JSON does not hold": (
        OWN.replace("0.1", "float('nan')") + PAYING % "HeightConfig()",
        "height.top: ",
    ),
    "a value of another type": (
        OWN.replace("0.1", "'high'") + PAYING % "HeightConfig()",
        'height.top: expected a number, got "high"',
    ),
}


@pytest.fixture
def own_recipe(own_modules):  # writes modules of a user's, and returns the recipe of one
    def written(text):
        own_modules(my_own=text, lab_settings=OWN)
        return "my_own:own"

    return written


@pytest.mark.parametrize(("text", "told"), CANNOT_BE_READ.values(), ids=CANNOT_BE_READ)
def test_a_run_that_no_other_process_could_read_is_refused_before_it_begins(own_recipe, text, told):
    with pytest.raises(UsageError) as refused:
        parse_train([own_recipe(text)])
    assert told in str(refused.value)


def test_a_class_of_settings_that_is_imported_by_its_name_is_read_back(own_recipe):
    recipe = own_recipe(
        "from lab_settings import HeightConfig\n"
        + OWN.partition("@dataclass")[0]
        + PAYING % "HeightConfig()"
    )
    config = parse_train([recipe, "--height.top", "0.3"]).config
    again, _ = config_from_json(config_to_json(config), recipe)
    assert again == config


def test_an_agent_of_a_class_inside_the_recipe_is_read_back(own_recipe):
    recipe = own_recipe(
        OWN.partition("@dataclass")[0]
        + """
def own(preset, env_id):
    @dataclass(frozen=True, kw_only=True)
    class Mine(SacConfig):
        depth: int = 3

    return replace(ddpg(preset, env_id), agent=Mine(depth=4))
"""
    )
    assert parse_train([recipe]).config.agent.depth == 4


def test_settings_of_another_agent_are_refused():
    with pytest.raises(UsageError, match=r"unknown setting 'agent\."):
        config_from_json(stored("sac"), "ddpg")


@cases(
    ("path", "value", "part"),
    *((("seed",), wrong, "seed") for wrong in ("1", True, 1.0, -1, None)),
    (("env_id",), 3, "env_id"),
    *((("agent", "polyak"), wrong, "agent.polyak") for wrong in ("0.9", 2, 10**400)),
    *((("agent", "entropy_mode"), wrong, "entropy_mode") for wrong in ("bath_mean", ["off"])),
    *((("agent", "return_clip"), wrong, "return_clip") for wrong in ([0.0], "01")),
    (("agent", "entropy_clip"), [-2.0, 0.0], r"entropy_clip: this version has \[-1.0, 0.0\] alone"),
    (("agent", "hidden_sizes"), [1.5], "agent.hidden_sizes"),
    (("agent", "learn_temperature"), 1, "agent.learn_temperature"),
    (("agent",), [], "agent"),
    (("rewards", "task", "weight"), [[0.0, 1.0, 2.0]], "task.weight"),
    (("rewards", "task", "scael"), 1.0, "did you mean scale"),
    (("rewards", "task"), 1.0, "task: expected an object"),
    (("rewards", "taks"), {}, "did you mean task"),
    (("rewards", "os:system"), {}, "rewards"),
    (("rewards",), ["task"], "rewards: expected an object"),
    (("rewards",), {}, "rewards: expected at least one"),
    (("music",), {}, "unknown setting 'music'"),
    (("agent", "polyac"), 1, "did you mean polyak"),
    (("agent", "__class__"), "os.system", "__class__"),
    (("env", "exact_goals"), True, "env.exact_goals: this version has false alone, got True"),
)
def test_a_wrong_value_or_key_is_refused_by_name(path, value, part):
    data = stored()
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(UsageError, match=part):
        config_from_json(data, "sac")


def test_what_every_version_writes_must_be_there():
    for key in ("env_id", "seed", "workers", "agent", "rewards"):
        data = stored()
        del data[key]
        with pytest.raises(UsageError, match=f"{key}: missing"):
            config_from_json(data, "sac")


def test_a_setting_that_became_a_constant_is_read_and_resumed(tmp_path):
    run = StoredRun("sac", "laptop", (), recipes.resolve("sac"))
    record = run_to_json(run)
    record["config"]["agent"]["entropy_clip"] = [-1.0, 0.0]
    record["config"]["env"] |= {"skill_discount": 0.99, "exact_goals": False}
    (tmp_path / "config.json").write_text(json.dumps(record))
    assert read_run(tmp_path) == run
    assert parse_train(["--resume", "--run-dir", str(tmp_path)]).config == run.config


def test_a_setting_that_is_newer_than_the_file_has_its_own_default_and_is_named(tmp_path):
    # the recipe now says 0.995 and 20 seconds; a run from before the settings had 0.95 and 300
    config = with_fields(recipes.resolve("sac"), {"agent.polyak": 0.995, "hang_after": 20.0})
    document = run_to_json(StoredRun("sac", "laptop", (), config))
    del document["config"]["agent"]["polyak"], document["config"]["hang_after"]
    del document["config"]["evaluation"]
    (tmp_path / "config.json").write_text(json.dumps(document))
    run = read_run(tmp_path)
    defaults = {"agent.polyak": 0.95, "hang_after": 300.0, "evaluation.episodes": 20}
    assert run.config == with_fields(config, {**defaults, "evaluation.every": 1})
    assert sorted(run.missing) == ["agent.polyak", "evaluation", "hang_after"]
    assert run.notice.splitlines() == [run.notice]
    assert all(name in run.notice for name in run.missing)
    assert parse_train(["--run-dir", str(tmp_path), "--resume"]).notice == run.notice
    document["versions"] = {"mujoco": "3.2.0"}
    (tmp_path / "config.json").write_text(json.dumps(document))
    told = f"it began with MuJoCo 3.2.0; {mujoco.__version__} may give other numbers"
    assert read_run(tmp_path).notice == f"{run.notice}; {told}"
    assert read_run(tmp_path)._replace(missing=()).notice == told
    assert run._replace(missing=(), mujoco=mujoco.__version__).notice == ""
    (tmp_path / "config.json").write_text(json.dumps(document | {"versions": 3}))
    with pytest.raises(UsageError, match="damaged: expected a dict under 'versions'"):
        read_run(tmp_path)


def refused(first, second):
    """Names of settings, and whatever else may not change, that keep a run from being resumed."""
    runs = [run_to_json(StoredRun("ddpg", "laptop", (), config)) for config in (first, second)]
    try:
        refuse_changes(*runs)
    except UsageError as error:
        return [line.partition(":")[0] for line in str(error).splitlines()[1:]]
    return []


def test_what_may_not_change_on_resume_is_named():
    first = recipes.resolve("ddpg")
    second = with_fields(first, {"seed": 3, "task.shift": 1.0, "epochs": 7})
    assert (refused(first, first), refused(first, second)) == ([], ["--seed", "--task.shift"])
    music = recipes.resolve("ddpg_music_reward")
    assert "--rewards" in refused(first, music)
    turned = dataclasses.replace(music, rewards=dict(reversed(music.rewards.items())))
    assert refused(music, turned) == ["--rewards"]  # the order of summation


@cases(
    "text",
    *("", "[]", "{}", "nonsense", "[" * 100_000, "\x00\xff"),
    *(ENTRIES % recipe for recipe in ('"sac"', '"nosuch"', '"__init__"', "3")),
    ENTRIES % '"sac", "init_from": 3',
    " " * 10_000_000 + "{}",
    ids=lambda text: repr(text[:30]),
)
def test_a_damaged_file_is_refused_with_its_path(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"config\.json"):
        read_run(tmp_path)


def test_every_field_is_written():
    config = recipes.resolve("sac")
    names = [field.name for field in dataclasses.fields(config) if field.name != "start"]
    assert list(config_to_json(config)) == names
    assert set(flatten(config_to_json(config))) == {field.name for field in fields_of(config)}
