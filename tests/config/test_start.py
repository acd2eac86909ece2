import json

import pytest

from music_tf import recipes
from music_tf.config.command import parse_train, train_help
from music_tf.config.start import PARTS, Source, Start, missing_start, other_source
from music_tf.config.stored import StoredRun, read_run, run_to_json, stored_start
from music_tf.errors import UsageError

NEEDY = [name for name in recipes.names() if recipes.source(name)]
SHORTER = Source("ddpg_music", ("actor",), epochs=13)


def refusal(*arguments):
    with pytest.raises(UsageError) as caught:
        parse_train(arguments)
    return str(caught.value)


@pytest.mark.parametrize("recipe", NEEDY)
@pytest.mark.parametrize("preset", recipes.PRESETS)
def test_a_recipe_without_its_source_says_which_commands_make_one(recipe, preset):
    text = refusal(recipe, "--preset", preset, "--env-id", "FetchSlide-v4")
    needed = recipes.source(recipe, preset, "FetchSlide-v4")
    first, then = (line.split("music-tf ")[1].split() for line in text.splitlines()[1:3])
    assert f"--parts {','.join(needed.parts)}" in text
    before = parse_train(first[1:])
    assert (before.recipe, before.preset) == (needed.recipe, preset)
    assert before.config.env_id == (needed.env_id or "FetchSlide-v4")
    usual = recipes.resolve(needed.recipe, preset, before.config.env_id).epochs
    assert before.config.epochs == (needed.epochs or usual)
    again = parse_train(then[1:])
    assert (again.recipe, again.preset) == (recipe, preset)
    assert again.config.env_id == "FetchSlide-v4"
    assert again.start == Start("latest", needed.parts, needed.epochs, before.config.env_id)


def test_a_source_with_epochs_of_its_own_is_made_with_them():
    def commands(env_id, source):
        text = str(missing_start("ddpg_music_finetune", source, env_id, " --preset paper"))
        return text.splitlines()[1:3]

    assert commands("FetchSlide-v4", SHORTER) == [
        "first: music-tf train ddpg_music --env-id FetchSlide-v4 --preset paper --epochs 13",
        "then:  music-tf train ddpg_music_finetune --env-id FetchSlide-v4 --preset paper "
        "--init-from latest",
    ]
    usual = SHORTER._replace(epochs=None)
    assert commands("FetchPush-v4", usual)[0].endswith("--env-id FetchPush-v4 --preset paper")


def test_a_start_knows_the_epochs_of_the_published_source():
    parts = ("actor", "critic", "targets")
    words = ["ddpg_music_finetune", "--preset", "paper", "--init-from", "run"]
    for env_id, epochs in (("FetchSlide-v4", 13), ("FetchPush-v4", None)):
        command = parse_train([*words, "--env-id", env_id])
        assert command.start == Start("run", parts, epochs, env_id)


def test_a_source_of_other_epochs_than_the_published_one_is_told_of():
    start = Start("run", ("actor",), 13)
    assert other_source(start, 13, None) == []
    assert other_source(Start("run", ("actor",)), 50, "FetchPush-v4") == []
    told = "--init-from run: published is a source of 13 epochs, got "
    assert other_source(start, 50, None) == [f"{told}50"]
    assert other_source(start, None, None) == [f"{told}an unknown number"]


def test_a_source_of_another_environment_than_the_recipe_wants_is_told_of():
    start = parse_train(["ddpg_music_transfer", "--init-from", "run"]).start
    assert start.env_id == "FetchPickAndPlace-v4"
    for found in ("FetchPickAndPlace-v4", None):
        assert other_source(start, 50, found) == []
    (told,) = other_source(start, 50, "FetchPush-v4")
    expected = "expected a run on FetchPickAndPlace-v4, got one on FetchPush-v4"
    assert told == f"--init-from run: {expected}"


def test_the_user_may_choose_other_parts():
    command = parse_train(
        ["ddpg_music_finetune", "--init-from", "a/run", "--parts", "actor,critic"]
    )
    assert command.start.parts == ("actor", "critic")


def test_any_recipe_can_start_from_a_run():
    command = parse_train(["ddpg_her", "--init-from=a/run", "--parts=normalizer,actor,actor"])
    assert command.start == Start("a/run", ("normalizer", "actor"))
    assert parse_train(["ddpg_her"]).start is None


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--init-from", "run"), "say which parts"),
        (("--parts", "actor"), "--init-from RUN"),
        (("--init-from", "run", "--parts", "acto"), "did you mean actor"),
        (("--init-from", "run", "--parts", "actor,"), "got ''"),
        (("--init-from", "run", "--parts", ""), "got ''"),
        (("--init-from", "run", "--parts", "actor, critic"), "got ' critic'"),
        (("--init-from",), "expected a value"),
    ],
)
def test_what_does_not_say_what_to_take_from_where_is_refused(options, part):
    text = refusal("ddpg", *options)
    assert part in text
    assert len(text.splitlines()) <= 10


def test_a_resumed_run_needs_no_source_and_takes_no_other(tmp_path):
    config = recipes.resolve("ddpg_music_finetune")
    record = {"run": "/somewhere", "checkpoint": "epoch_000003", "sha256": "0", "parts": ["actor"]}
    began = ("ddpg_music_finetune", "--init-from", "/somewhere")
    run = StoredRun("ddpg_music_finetune", "laptop", began, config, record)
    (tmp_path / "config.json").write_text(json.dumps(run_to_json(run)))
    assert read_run(tmp_path) == run
    assert stored_start(tmp_path) == record
    command = parse_train(["--run-dir", str(tmp_path), "--resume"])
    assert (command.start, command.config) == (None, config)
    again = parse_train([*began, "--run-dir", str(tmp_path), "--resume"])
    assert (again.start, again.config) == (None, config)
    for other in (["--init-from", "latest"], ["--parts", "actor"]):
        text = refusal("--run-dir", str(tmp_path), "--resume", *other)
        assert "leave out --init-from" in text


@pytest.mark.parametrize("value", ['"text"', "3", "[]"])
def test_a_record_of_another_kind_is_refused(tmp_path, value):
    run = StoredRun("ddpg", "laptop", (), recipes.resolve("ddpg"))
    text = json.dumps(run_to_json(run)).replace('"init_from": null', f'"init_from": {value}')
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError, match="init_from"):
        read_run(tmp_path)


def test_the_help_of_a_recipe_says_what_it_starts_from(capsys):
    for recipe in ("ddpg_music_reward", "ddpg_her"):
        with pytest.raises(SystemExit):
            train_help([recipe, "--help"])
        text = capsys.readouterr().out
        needs = "needs --init-from, a run of ddpg_music; takes over statistics\n" in text
        assert needs == (recipe == "ddpg_music_reward")


def test_recipes_name_parts_that_exist():
    for name in NEEDY:
        for preset in recipes.PRESETS:
            assert set(recipes.source(name, preset).parts) <= set(PARTS)
