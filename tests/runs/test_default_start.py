"""Runs of recipes that start from an agent of the package unless the user says otherwise."""

import json

import pytest

import music_tf
from music_tf import recipes
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train, train_help
from music_tf.storage.run_paths import AGENTS
from tests.kit.cases import cases
from tests.kit.saved_run import load_weights
from tests.kit.warm import try_warm_start

pytestmark = pytest.mark.thorough

PICK = "FetchPickAndPlace-v4"
SHORT = {
    **{"env_id": PICK, "epochs": 1, "workers": 1, "rollouts": 1, "cycles": 2, "updates": 1},
    **{"threads": 1, "evaluation": {"episodes": 1}, "collect": {"update_after": 0}},
}
RECIPES = ("sac_place", "sac_metra", "sac_lsd", "sac_csd")


def test_a_run_starts_from_the_packages_agent_and_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "pick").mkdir()  # of the user, who named nothing
    monkeypatch.chdir(tmp_path)
    run = music_tf.train("sac_metra", run_dir=tmp_path / "run", **SHORT)
    said = "starts from the agent pick: actor, normalizer; from random weights: --init-from none"
    assert said in capsys.readouterr().out.splitlines()
    record = json.loads((run.path / "config.json").read_text())["init_from"]
    assert (record["run"], record["parts"]) == (str(AGENTS / "pick"), ["actor", "normalizer"])
    kernel = "parameters/actor/hidden_1/kernel"
    source, begun, after = (
        load_weights(folder)[0][kernel]
        for folder in (
            AGENTS / "pick",
            *(run.path / "checkpoints" / name for name in ("epoch_000000", "epoch_000001")),
        )
    )
    assert (begun == source).all()
    assert (after != source).any()


@cases(
    ("options", "text"),
    (
        {"agent": {"hidden_sizes": (8, 8)}},
        r"does not fit\n(?s:.*)\nfor example: --agent.hidden-sizes 256 256 256; from random",
    ),
    ({"normalizer": {"clip": 10.0}}, r"differently here, under .*\nadd: \S+clip 5; from random"),
    ({"parts": "actor,critic"}, "no critics of ddpg(?s:.*); from random"),
    ({"best_of": 1}, r"--best-of: expected a run with \d+ skills"),
)
def test_options_that_an_agent_does_not_fit_are_refused_with_the_way_without_it(
    tmp_path, options, text
):
    with pytest.raises(UsageError, match=text) as fault:
        music_tf.train("sac_metra", run_dir=tmp_path / "run", **SHORT, **options)
    if "best_of" not in options:
        assert str(fault.value).endswith("; from random weights: --init-from none")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError) as typed:  # by the user, who knows
        music_tf.train(
            "sac_metra",
            run_dir=tmp_path / "run",
            **{"init_from": "pick", "parts": "actor,normalizer", **SHORT, **options},
        )
    assert "--init-from none" not in str(typed.value)


@cases(
    ("recipe", "env_id"),
    *((recipe, PICK) for recipe in RECIPES),
    ("sac_place", "FetchPush-v4"),
    ("sac_lsd", "FetchPushDense-v4"),
)
def test_every_default_start_fits(recipe, env_id):
    few = ("--workers", "1", "--rollouts", "1", "--replay.capacity", "100")
    command = parse_train([recipe, "--env-id", env_id, *few])
    source = AGENTS / command.start.path
    record = try_warm_start(command.config, source, command.start.parts).record
    assert record["env_id"] == env_id.replace("Dense", "")


def test_help_names_the_agent_and_only_recipes_of_this_family_have_one(capsys):
    train_help(["sac_place", "--env-id", PICK, "--help"])
    text = "starts from the agent pick unless --init-from none; takes over actor, normalizer"
    assert text in capsys.readouterr().out
    starts = {name: recipes.resolve(name).start for name in recipes.names()}
    assert {name for name, start in starts.items() if start and start.agent} == {*RECIPES}
