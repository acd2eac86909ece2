import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest

from music_tf import recipes
from music_tf.config.fields import fields_of, show_option, show_value, with_fields
from music_tf.config.settings import Config
from music_tf.errors import UsageError
from music_tf.reading.command import TrainCommand, as_typed, parse_train, resume_line, train_help
from music_tf.reading.options import described, read_value, shown_default, split
from music_tf.reading.stored import StoredRun, config_from_json, run_to_json
from music_tf.recipes.releases import OTHER_PROGRAMS
from tests.kit.cases import cases, every

FIELDS = {f.name: f for name in recipes.names() for f in fields_of(recipes.resolve(name))}
WORDS = "off, symmetric, auto, paid"
BOUNDS = f"expected 2 numbers, the lower first (inf allowed) or one of {WORDS}, got"


def refusal(*arguments):
    with pytest.raises(UsageError) as caught:
        parse_train(arguments)
    text = str(caught.value)
    assert len(text.splitlines()) <= 10
    return text


def test_every_field_is_an_option_with_either_spelling():
    for name, field in FIELDS.items():
        words = [field.value] if isinstance(field.value, str) else show_value(field.value).split()
        for option in (show_option(name), f"--{name}"):
            _, typed = split([option, *(words if field.value != () else ())], {name: field})
            assert read_value(field, typed[name]) == field.value


def test_typed_values_arrive_the_last_of_several_wins_and_the_command_keeps_them():
    line = (
        "--seed=7 ddpg --agent.hidden-sizes 8 9 --music.clip -inf 2 --music.weight 0 1 5 0.5 "
        "--agent.discount 0.9 --music.train false --max-minutes inf --rewards task music"
    )
    command = parse_train(line.split())
    config = command.config
    assert (command.recipe, config.seed) == ("ddpg", 7)
    assert (config.agent.hidden_sizes, list(config.rewards)) == ((8, 9), ["task", "music"])
    assert config.rewards["music"].clip == (-math.inf, 2.0)
    assert config.rewards["music"].weight == ((0.0, 1.0), (5.0, 0.5))
    assert config.agent.discount == 0.9
    assert config.rewards["music"].train is False
    config = parse_train(["ddpg", "--agent.discount", "0.9", "--agent.discount", "none"]).config
    assert config.agent.discount is None
    command = parse_train(["ddpg", "--seed", "3", "--run-dir", "here"])
    assert command.arguments == ("ddpg", "--seed", "3", "--run-dir", "here")
    assert command.run_dir == Path("here").absolute()
    assert not command.resume


@cases(
    ("words", "found"),
    ("--agent.return-clip -20 0 ddpg", (-20.0, 0.0)),
    ("ddpg --agent.return-clip=-inf 3.5", (-math.inf, 3.5)),
    ("ddpg --agent.return-clip -20,0 --world.agent 0,1 --world.surrounding 2", (-20.0, 0.0)),
    ("ddpg --agent.return-clip=[-20, 0]", (-20.0, 0.0)),
    ("--agent.return-clip symmetric ddpg", "symmetric"),
    ("ddpg --agent.return_clip=auto", "auto"),
)
def test_a_return_is_bounded_by_a_word_or_two_numbers(words, found):
    command = parse_train(words.split())
    assert command.config.agent.return_clip == found
    assert command.config.world.agent == ((0, 1) if "world" in words else ())
    stored = run_to_json(StoredRun("ddpg", "laptop", (), command.config))
    again, missing = config_from_json(json.loads(json.dumps(stored["config"])), "ddpg")
    assert (again, missing) == (command.config, ())


@cases(
    ("line", "parts"),
    ("ddgp", ["RECIPE: expected one of the ", "did you mean ddpg"]),
    ("ddpg --preset labtop", ["--preset: expected one of laptop, paper", "did you mean laptop?"]),
    ("ddpg -seed 3", ["'-seed'", "--seed"]),
    (
        "ddpg --learning-rate 1",
        ["did you mean --agent.actor-learning-rate or --agent.critic-learning-rate?"],
    ),
    ("ddpg_music --learning-rate 1", ["--music.learning-rate or --agent.actor-learning-rate or "]),
    ("ddpg --epochs -3", ["--epochs: expected a whole number of at least 1, got -3"]),
    ("ddpg --frobnicate 1", ["unknown option '--frobnicate'\n--help lists the valid ones"]),
    ("ddpg -n 2", ["unknown option '-n'", "music-tf launch -n 2 train ..."]),
    ("ddpg -n2", ["unknown option '-n2'", "music-tf launch -n 2 train ..."]),
    ("ddpg --np=2", ["unknown option '--np'", "music-tf launch -n 2 train ..."]),
    ("ddpg_music FetchPush-v4", ["'FetchPush-v4'\ndid you mean --env-id FetchPush-v4?"]),
    ("ddpg my_robot:My-v0", ["'my_robot:My-v0'\ndid you mean --env-id my_robot:My-v0?"]),
    ("my_robot:My-v0", ["did you mean --env-id my_robot:My-v0?"]),
    ("ddpg --music.clip 0,4,5", ["--music.clip", "expected 2 values, got 3"]),
    ("ddpg --world.agent 0,x", ["--world.agent", "whole numbers", "'0,x'"]),
    ("sac --env-id CarRacing-v3", ["expected observations that are a vector", "are images"]),
    ("ddpg --rewards task task", ["--rewards", "each once", "'task task'"]),
    ("ddpg --rewards", ["--rewards", "at least one of task, ", "got ''"]),
    ("ddpg --agent.polyak x", ["--agent.polyak", "a number in [0, 1]", "Now 0.995"]),
    ("sac_metra --distance.rest-until x", ["keep their initial values.", "an ... Now 0.25."]),
    ("ddpg --music.gain 2", ["--music.gain", "has no reward music", "--rewards task music"]),
    ("ddpg --world.agent 0", ["--world.agent, --world.surrounding", "both or neither"]),
    (
        "ddpg --world.support 1 1 0 0 0.4",
        ["LOW_X LOW_Y HIGH_X HIGH_Y", "each LOW below its HIGH, got (1.0, "],
    ),
    ("ddpg --world.descriptor goal", ["world.descriptor", "achieved_goal", "module:function"]),
    ("ddpg --world.descriptor foot_contact", ["'foot_contact'\ndid you mean foot_contacts?"]),
    ("sac_diayn --preset paper --agent.entropy-mode off", ["sac_diayn as paper has no such"]),
    ("sac --env.skill-steps 5", ["--env.skill-steps", "needs --env.skills RUN"]),
    ("sac --tasks.prior 5", ["--tasks.prior: needs an agent that infers", "sac_pearl"]),
    ("sac_diayn --incremental.replay reset", ["replay: needs skills that are", "sac_disk"]),
    ("ddpg --world.extras a=b", ["world.extras", "NAME=stride:STEPS or NAME=module:function"]),
    ("ddpg --world.extras music_tf/descriptor", ["world.extras", "NAME=module:function"]),
    ("ddpg_music --music.weight 0 1 2", ["--music.weight", "pairs", "'0 1 2'"]),
    ("ddpg --seed", ["--seed", "a value", "none"]),
    ("ddpg --resume=1", ["--resume", "no value"]),
    ("ddpg --run-dir=", ["--run-dir", "''"]),
    ("ddpg --agent.temperature 1", ["--agent.temperature", "ddpg has no such setting"]),
    ("sac --without-replay", ["--without-replay", "a new run", "--resume"]),
    ("ddpg --learners -1", ["--learners", "whole number in [0, 4096]", "got -1"]),
    ("ddpg --agent.return-clip 0 -20", [f"--agent.return-clip: {BOUNDS} (0.0, -20.0)"]),
    ("ddpg --agent.return-clip nan 0", [f"--agent.return-clip: {BOUNDS}"]),
    ("ddpg --agent.return-clip -20", ["--agent.return-clip: expected 2 values, got 1"]),
    ("ddpg --agent.return-clip -20 off", [f"--agent.return-clip: {BOUNDS} '-20 off'"]),
    ("ddpg --agent.return-clip of", [f"{BOUNDS} 'of'\ndid you mean off?"]),
    ("ddpg_her --demonstrations --seed 1", ["--demonstrations: expected values, got none"]),
    ("ddpg --agent.return-clip", ["--agent.return-clip: expected a value, got none"]),
    ("ddpg --env.remake --seed 1", ["--env.remake: expected True or False, got none"]),
    ("ddpg_music --music.gain fast", ["expected a number of at least 0 or auto or"]),
    ("ddpg_music --music.mean 0", ["--music.mean: expected a number in (0, 1000000]"]),
    ("ddpg --agent.polyak-every updat", ["cycle, update, got 'updat'\ndid you mean update?"]),
    ("ddpg --best-of 0", ["--best-of", "whole number in [1, 100000] or None", "got 0"]),
    ("sac --best-of 2", ["--best-of: needs --init-from RUN"]),
    (
        "sac_finetune_skill --init-from a --best-of 2 --pinned-skill 1 --skills 3",
        ["pinned_skill is 1; leave"],
    ),
    ("__main__:own", ["another process can import, got __main__"]),
)
def test_a_refusal_says_what_was_expected_and_what_came(line, parts, capfd):
    text = refusal(*line.split())
    assert (capfd.readouterr(), [part for part in parts if part not in text]) == (("", ""), [])


@cases(
    ("line", "episodes"),
    ("sac_diayn", 20),
    ("sac_diayn --skills 30", 30),
    ("sac_diayn --skills 19", 20),
    ("sac_diayn --skills 30 --evaluation.episodes 7", 7),
    ("sac_diayn --skills 30 --rewards task --pinned-skill 2", 20),
    ("sac_disk --skills 6", 3),
    ("sac_finetune_skill --skills 30 --init-from push", 10),
    ("sac_diayn_finetune --skills 30 --init-from push --pinned-skill None", 30),
)
def test_an_evaluation_has_an_episode_of_each_typed_skill(line, episodes):
    command = parse_train([*line.split(), "--env-id", "music_tf/UnitBox-v0"])
    assert command.config.evaluation.episodes == episodes


def write(directory, *words):
    command = parse_train(words)
    run = StoredRun(command.recipe, command.preset, command.arguments, command.config)
    (directory / "config.json").write_text(json.dumps(run_to_json(run)))
    return command.config


@pytest.fixture
def stored(tmp_path):
    return tmp_path, write(tmp_path, "sac", "--seed", "5", "--agent.polyak", "0.9")


def test_a_resumed_run_needs_no_recipe_keeps_its_settings_and_may_become_longer(stored):
    directory, config = stored
    words = ["--run-dir", str(directory), "--resume"]
    command = parse_train(words)
    assert (command.recipe, command.config, command.resume) == ("sac", config, True)
    assert parse_train(["sac", "--seed", "5", *words]).config == config
    longer = parse_train([*words, "--epochs", "77", "--max-minutes", "9"]).config
    assert longer == with_fields(config, {"epochs": 77, "max_minutes": 9.0})


@cases(
    ("words", "part"),
    (["--seed", "6"], "--seed: the run has 5, got 6"),
    (["--agent.polyak", "0.95"], "--agent.polyak: the run has 0.9, got 0.95"),
    (["--preset", "paper"], "--preset: the run has laptop, got paper"),
    (["ddpg"], "RECIPE: the run has sac, got ddpg"),
    (["--best-of", "5"], "leave out --init-from, --parts, --best-of and --demonstrations"),
)
def test_nothing_else_of_a_resumed_run_may_change(stored, words, part):
    assert part in refusal("--run-dir", str(stored[0]), "--resume", *words)


def test_a_resumed_run_keeps_the_skills_that_were_the_latest_when_it_began(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSIC_TF_RUNS", str(tmp_path))
    skills, own = tmp_path / "skills", tmp_path / "own"
    for run in (skills, own):
        run.mkdir()
    write(skills, "sac_diayn")
    (tmp_path / "latest").symlink_to(skills)
    words = ["skills_controller", "--env.skills", "latest"]
    config = write(own, *words)
    assert config.env.skills == str(skills)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to(own)
    resumed = ["--run-dir", str(own), "--resume"]
    assert parse_train([*words, *resumed]).config == config
    other = refusal("--env.skills", str(own), *resumed)
    assert f"--env.skills: the run has {skills}, got {own}" in other


def test_an_environment_that_needs_an_import_must_be_typed_again(tmp_path):
    config = write(tmp_path, "ddpg", "--env-id", "mine:Task-v0")
    words = ["--run-dir", str(tmp_path), "--resume"]
    assert "--env-id mine:Task-v0" in refusal(*words)
    assert "module" in refusal(*words, "--env-id", "other:Task-v0")
    assert parse_train([*words, "--env-id", "mine:Task-v0"]).config == config
    assert parse_train([*words, "--allow-import"]).config == config


@pytest.fixture
def explained(capsys):
    """Returns what `train ... --help all` writes, on one line."""

    def explain(*words):
        train_help([*words, "--help", "all"])
        return " ".join(capsys.readouterr().out.split())

    return explain


@every("recipe", [(), *((name,) for name in recipes.names())])
def test_help_fits_a_screen_names_every_option_and_group_and_cuts_no_sentence(capsys, recipe):
    train_help([*recipe, "--help"])
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 56
    assert max(map(len, text.splitlines())) <= 110
    assert " ...\n" not in text
    config = recipes.resolve(*recipe) if recipe else Config()
    fields = [field for field in fields_of(TrainCommand(config=config)) if field.name != "recipe"]
    plain = [field for field in fields if "." not in field.name]
    shown = [f"\n  {show_option(field.name):19} {field.short}" for field in plain]
    assert [line for line in shown if line not in text] == []
    assert [field.name for field in plain if not 0 < len(field.short) <= 60] == []
    assert [f.name for f in fields if show_option(f.name)[2:].partition(".")[0] not in text] == []


def test_the_defaults_on_the_screen_are_those_of_the_recipe_if_they_differ(capsys):
    def shown(option, *words):
        train_help([*words, "--help"])
        rows = capsys.readouterr().out.splitlines()
        return next(row.split()[-1] for row in rows if row.startswith(f"  {option} "))

    for preset in ("laptop", "paper"):
        workers = recipes.resolve("ddpg_music", preset).workers
        assert shown("--workers", "ddpg_music", "--preset", preset) == f"({workers})"
    assert (shown("--workers"), shown("--seed"), shown("--parts")) == (
        *("(recipe)", "(0)", "actor,critic"),
    )


def explained_as(field):
    default = f" (default: {shown})" if (shown := shown_default(field)) else ""
    return f"{show_option(field.name)}{default} {field.meaning}"


@cases(
    ("name", "line"),
    ("music.weight", "  --music.weight  (default: epoch 0: 1, 50: 1, 200: 1)"),
    ("music.gain", "  --music.gain  (default: auto)"),
    ("music.weight_latest", "  --music.weight-latest"),  # None
    ("env.skills", "  --env.skills"),  # empty
    ("max_minutes", "  --max-minutes"),  # inf
    ("env.remake", "  --env.remake  (default: False)"),
)
def test_a_default_is_shown_in_words_or_not_at_all(name, line):
    fields = list(fields_of(recipes.resolve("ddpg_music")))
    assert line in described(fields)
    assert "or None" not in next(each.meaning for each in fields if each.name == name) or (
        name == "music.gain"
    )
    by_level = FIELDS["task.weight"]._replace(value=((0.5, 0.0), (1.0, 1.0)))
    both = [by_level, FIELDS["task.weight_by"]._replace(value="moved")]
    assert next(described(both)) == "  --task.weight  (default: moved 0.5: 0, 1: 1)"


def test_help_of_a_group_explains_all_of_its_settings(capsys):
    for words in (["sac_her", "--help", "replay"], ["--help=replay", "sac_her"]):
        train_help(words)
        text = " ".join(capsys.readouterr().out.split())
        for field in fields_of(recipes.resolve("sac_her").replay):
            assert explained_as(field) in text
    train_help(["sac_her", "--help", "music"])  # a reward that the recipe does not pay
    assert "--music.gain" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"one of .*agent.*'agnt'\ndid you mean agent"):
        train_help(["sac_her", "--help", "agnt"])


def test_help_of_a_recipe_shows_every_option_with_default_meaning_and_range(explained):
    ours, theirs = explained("sac_her").split("settings of other programs:")
    for field in fields_of(recipes.resolve("sac_her")):
        assert len(field.documentation) > 10
        assert explained_as(field) in (theirs if field.name in OTHER_PROGRAMS else ours)
    unpaid = ("music", "joint_motion", "random_reward", "distance")
    assert [term for term in unpaid if f" {show_option(term)}.weight " not in ours] == []


def test_help_of_a_recipe_shows_what_is_typed_and_what_it_starts_from(explained, capsys):
    plain = explained("sac_diayn")
    assert "--agent.entropy-mode" in plain
    assert "--agent.value-learning-rate" not in plain
    text = explained("sac_diayn", "--preset=qdax", "--preset", "paper")
    assert "--agent.entropy-mode" not in text
    assert "(default: 0.0003) Adam step size of the state value. A number in [0, 1]." in text
    assert "--preset (default: paper)" in text
    assert "(default: Hopper-v5)" in explained("sac", "--env-id", "Hopper-v5")
    train_help(["ddpg_music_reward", "--help"])
    source = "needs --init-from, a run of ddpg_music; takes over statistics\n"
    assert source in capsys.readouterr().out
    train_help(["sac_metra", "--help"])
    source = (
        "starts from the agent push_sac unless --init-from none; takes over actor, normalizer\n"
    )
    assert source in capsys.readouterr().out
    with pytest.raises(UsageError, match="expected one of laptop, paper, music, qdax, diayn_torch"):
        train_help(["sac_diayn", "--preset", "torch", "--help"])


@cases(
    ("options", "line"),
    ({"max_minutes": 3, "seed": np.int64(7)}, "--max-minutes 3 --seed 7"),
    ({"music": {"gain": 5, "train": False}}, "--music.gain 5 --music.train False"),
    ({"music.gain": 5}, "--music.gain 5"),
    ({"agent": {"hidden_sizes": np.array([8, 9])}}, "--agent.hidden-sizes 8 9"),
    ({"music": {"weight": [(0, 1), (5, 0.5)]}}, "--music.weight 0 1 5 0.5"),
    ({"music": {"clip": (0.5, math.inf)}}, "--music.clip 0.5 inf"),
    ({"agent": {"discount": None}}, "--agent.discount None"),
    ({"rewards": ["task", "music"]}, "--rewards task music"),
    (
        {"env": {"kwargs": {"a": [1]}, "remake": True}},
        "--env.kwargs '{\"a\": [1]}' --env.remake true",
    ),
    (
        {"env": {"changes": [{}, {"at": {"steps": 9}}]}},
        """--env.changes '[{}, {"at": {"steps": 9}}]'""",
    ),
    ({"run_dir": Path("runs/x"), "preset": "paper"}, "--run-dir runs/x --preset paper"),
    ({"resume": False, "allow_import": True}, "--allow-import"),
    ({"run_dir": "-odd"}, "--run-dir=-odd"),
    ({"music": {}, "init_from": None, "demonstrations": ()}, ""),
    ids=str,
)
def test_options_given_in_python_mean_what_they_do_when_they_are_typed(options, line):
    given = parse_train(["ddpg_music", *as_typed(options)])
    typed = parse_train(["ddpg_music", *shlex.split(line)])
    assert (given, given.config) == (typed, typed.config)


@cases(
    ("typed", "launch", "line"),
    ("", "", "train ddpg --run-dir run --resume"),
    ("--device gpu", "", "train ddpg --run-dir run --resume --device gpu"),
    ("", "-n 2", "launch -n 2 train --run-dir run --resume"),
    (
        "--learners 1 --device cpu --world.extras a=math:floor",
        "--hosts a:2,b:1",
        "launch --hosts a:2,b:1 train --run-dir run --resume --learners 1 --device cpu "
        "--allow-import",
    ),
)
def test_the_line_that_resumes_a_run_keeps_its_topology(typed, launch, line):
    command = parse_train(["ddpg", *typed.split()])
    assert resume_line(command, Path("run"), launch) == f"music-tf {line}"
    words = shlex.split(resume_line(command, Path("my runs/it's one"), launch))
    assert words[words.index("--run-dir") + 1] == "my runs/it's one"


def test_a_flag_in_python_is_true_or_false_and_arguments_are_what_json_can_hold():
    with pytest.raises(UsageError, match="--resume: expected True or False, got 'yes'"):
        as_typed({"resume": "yes"})
    kwargs = {"size": np.int64(3), "near": np.float32(0.5), "kinds": ["a", None]}
    given = parse_train(["ddpg_her", *as_typed({"env": {"kwargs": kwargs}})])
    assert json.loads(given.config.env.kwargs) == {"size": 3, "near": 0.5, "kinds": ["a", None]}
    for value in (np.zeros(2), object(), {("a", "b"): 1}):
        with pytest.raises(UsageError, match=r"--env\.kwargs: expected what JSON can hold, got "):
            as_typed({"env": {"kwargs": {"g": value}}})
