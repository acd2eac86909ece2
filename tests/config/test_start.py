import itertools
import json

import pytest

from music_tf import recipes
from music_tf.config.warm_start import AGENT_PARTS, WarmStart, other_source, parts_of
from music_tf.reading.command import parse_train
from music_tf.reading.stored import StoredRun, read_run, run_to_json, stored_start
from tests.kit.cases import cases, every
from tests.reading.test_command import refusal

PUSH, PICK, SLIDE = (f"Fetch{task}-v4" for task in ("Push", "PickAndPlace", "Slide"))
BOX = "music_tf/UnitBox-v0"
TUNED, SKILLED = "ddpg_music_finetune --init-from run", "sac_diayn_finetune --init-from run"
WITH_STATISTICS = (*AGENT_PARTS, "normalizer")
NEEDY = [name for name in recipes.names() if getattr(recipes.resolve(name).start, "recipe", "")]
POLICY = ("actor", "normalizer")
TRANSFER = WarmStart("run", ("statistics",), None, PICK)


@pytest.mark.thorough
@every(("recipe", "preset"), itertools.product(NEEDY, recipes.PRESETS))
def test_a_recipe_without_its_source_says_which_commands_make_one(recipe, preset):
    text = refusal(recipe, "--preset", preset, "--env-id", "FetchSlide-v4")
    needed = recipes.resolve(recipe, preset, "FetchSlide-v4").start
    first, then = (line.split("music-tf ")[1].split() for line in text.splitlines()[1:])
    assert set(needed.parts) <= set(parts_of(recipes.terms().values()))
    assert f"--parts {','.join(needed.parts)}" in text
    assert ("--epochs" in first) is (needed.epochs is not None)
    before = parse_train(first[1:])
    assert (before.recipe, before.preset) == (needed.recipe, needed.preset or preset)
    assert before.config.env_id == (needed.env_id or "FetchSlide-v4")
    usual = recipes.resolve(needed.recipe, before.preset, before.config.env_id).epochs
    assert before.config.epochs == (needed.epochs or usual)
    again = parse_train(then[1:])
    assert (again.recipe, again.preset) == (recipe, preset)
    assert again.config.env_id == "FetchSlide-v4"
    parts, env_id = needed.parts, before.config.env_id
    assert again.start == WarmStart("latest", parts, needed.epochs, env_id, needed.best_of)


@cases(
    ("words", "start"),
    (f"{TUNED} --preset paper --env-id {SLIDE}", WarmStart("run", AGENT_PARTS, 13, SLIDE)),
    (f"{TUNED} --preset paper", WarmStart("run", AGENT_PARTS, None, PUSH)),
    (f"{TUNED} --parts actor,critic", WarmStart("run", ("actor", "critic"), None, PUSH)),
    (
        "ddpg_her --init-from=a/run --parts=normalizer,actor,actor",
        WarmStart("a/run", ("normalizer", "actor")),
    ),
    (f"{SKILLED} --env-id {BOX}", WarmStart("run", WITH_STATISTICS, None, BOX, None, True)),
    (f"{SKILLED} --env-id {BOX} --skills 20", WarmStart("run", WITH_STATISTICS, None, BOX)),
    (SKILLED, WarmStart("run", WITH_STATISTICS, None, PICK)),
    ("ddpg_her", None),
    ("ddpg_her --init-from none", None),
    ("sac_metra", WarmStart("push_sac", POLICY)),
    ("sac_csd --env-id FetchPushDense-v4", WarmStart("push_sac", POLICY)),
    ("sac_place --env-id FetchPickAndPlace-v4", WarmStart("pick", POLICY)),
    ("sac_lsd --env-id gymnasium_robotics:FetchPickAndPlaceDense-v4", WarmStart("pick", POLICY)),
    ("sac_metra --parts actor", WarmStart("push_sac", ("actor",))),
    ("sac_metra --init-from a/run", WarmStart("a/run", POLICY)),
    ("sac_metra --init-from none", None),
    ("sac_metra --env-id FetchSlide-v4", None),
    ("sac_metra --env-id music_tf/FetchPushConveyor-v0 --distance.columns 3 4", None),
    ("sac_metra --env-id Ant-v5", None),
    ("sac_metra --env-id Ant-v5 --preset metra_release", None),
)
def test_a_run_starts_from_what_the_recipe_or_the_user_says(words, start):
    command = parse_train(words.split())
    by_default = start is not None and not start.env_id and "--init-from" not in words
    assert command.start == (start and start._replace(by_default=by_default))


@cases(
    ("start", "found", "told"),
    (WarmStart("run", ("actor",), 13), (13, None), None),
    (WarmStart("run", ("actor",)), (50, PUSH), None),
    (WarmStart("run", ("actor",), 13), (50, None), "a source of 13 epochs, got 50"),
    (WarmStart("run", ("actor",), 13), (None, None), "13 epochs, got an unknown number"),
    (TRANSFER, (50, PICK), None),
    (TRANSFER, (50, None), None),
    (TRANSFER, (50, PUSH), f"expected a run on {PICK}, got one on {PUSH}"),
)
def test_a_source_that_is_not_what_the_recipe_wants_is_told_of(start, found, told):
    lines = other_source(start, *found)
    assert len(lines) == (told is not None)
    assert all(line.startswith("--init-from run: ") and line.endswith(told) for line in lines)
    assert parse_train(["ddpg_music_transfer", "--init-from", "run"]).start == TRANSFER


@cases(
    ("options", "part"),
    (("--parts", "actor"), "--init-from RUN"),
    (("--parts", "actor", "--init-from", "none"), "--init-from RUN"),
    (("--init-from", "run", "--parts", "acto"), "did you mean actor"),
    (("--init-from", "run", "--parts", "actor,"), "got ''"),
    (("--init-from", "run", "--parts", ""), "got ''"),
    (("--init-from", "run", "--parts", "actor, critic"), "got ' critic'"),
    (("--init-from",), "expected a value"),
)
def test_what_does_not_say_what_to_take_from_where_is_refused(options, part):
    assert part in refusal("ddpg", *options)
    assert "--init-from RUN is missing" in refusal("ddpg_music_finetune", "--init-from", "none")


def test_a_resumed_run_needs_no_source_and_takes_no_other(tmp_path):
    config = recipes.resolve("ddpg_music_finetune")
    record = {"run": "/somewhere", "checkpoint": "epoch_000003", "sha256": "0", "parts": ["actor"]}
    began = ("ddpg_music_finetune", "--init-from", "/somewhere")
    run = StoredRun("ddpg_music_finetune", "laptop", began, config, record)
    (tmp_path / "config.json").write_text(json.dumps(run_to_json(run)))
    assert (read_run(tmp_path), stored_start(tmp_path)) == (run, record)
    words = ["--run-dir", str(tmp_path), "--resume"]
    for typed in (words, [*began, *words]):
        command = parse_train(typed)
        assert (command.start, command.config) == (None, config)
    for other in (["--init-from", "latest"], ["--parts", "actor"]):
        assert "leave out --init-from" in refusal(*words, *other)
    for more in ((), ("--init-from", "none")):  # nothing is taken by default
        run = StoredRun("sac_metra", "laptop", ("sac_metra", *more), recipes.resolve("sac_metra"))
        (tmp_path / "config.json").write_text(json.dumps(run_to_json(run)))
        assert parse_train(words).start is parse_train([*words, *more]).start is None
        assert "leave out --init-from" in refusal(*words, "--init-from", "push_sac")
