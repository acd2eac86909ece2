"""The weights that come with the package fit the recipes that start from them."""

import json
from pathlib import Path

import pytest

import music_tf
from music_tf import recipes
from music_tf.config.command import parse_train
from music_tf.config.start import other_source
from music_tf.errors import UsageError
from music_tf.runs.warm_start import try_heritage
from music_tf.storage.run_directory import find_source
from music_tf.storage.start import start_line

WEIGHTS = Path(music_tf.__file__).parent / "weights"
TASKS = {"push": "FetchPush-v4", "pick": "FetchPickAndPlace-v4"}
ORIGINS = {
    "push": ("ddpg_music", "FetchPush-v4", 0),
    "pick": ("ddpg_music", "FetchPickAndPlace-v4", 1),
    "push_sac": ("sac_music", "FetchPush-v4", 1),
}
OF_MUSIC = [name for name in recipes.names() if "_music_" in name and recipes.source(name)]
OF_STATISTICS = [name for name in OF_MUSIC if "_prioritized" in name or "_reward" in name]
OF_SAC = [
    name
    for name in recipes.names()
    if name.startswith("sac_") and recipes.source(name) and name not in OF_STATISTICS
]


def inherited(recipe, env_id, folder):
    words = [recipe, "--env-id", env_id, "--init-from", folder]
    command = parse_train(words)
    return try_heritage(command.config, find_source(command.start.path), command.start.parts)


@pytest.mark.parametrize("folder", TASKS)
@pytest.mark.parametrize("recipe", ["ddpg_music_finetune", "ddpg_music_finetune_her"])
def test_fine_tuning_starts_from_them(recipe, folder):
    assert inherited(recipe, TASKS[folder], folder).record["parts"] == [
        "actor",
        "critic",
        "targets",
        "normalizer",
    ]


@pytest.mark.parametrize(
    ("recipe", "parts"),
    [
        ("sac_music_finetune", ["actor", "critic", "targets", "normalizer"]),
        ("sac_music_finetune_her", ["actor", "normalizer"]),
        ("sac_music_prioritized", ["statistics"]),
    ],
)
def test_networks_of_sac_start_from_those_of_sac(recipe, parts):
    assert inherited(recipe, "FetchPush-v4", "push_sac").record["parts"] == parts


@pytest.mark.parametrize("folder", TASKS)
@pytest.mark.parametrize("recipe", OF_STATISTICS)
def test_priorities_and_added_rewards_start_from_them_with_either_learner(recipe, folder):
    assert inherited(recipe, TASKS[folder], folder).record["parts"] == ["statistics"]


def test_transfer_starts_from_the_other_task_and_tells_of_its_own():
    start = parse_train(["ddpg_music_transfer", "--init-from", "weights"]).start
    for folder, told in (("pick", 0), ("push", 1)):
        record = inherited("ddpg_music_transfer", "FetchPush-v4", folder).record
        assert record["parts"] == ["statistics"]
        assert len(other_source(start, record["epoch"], record["env_id"])) == told


@pytest.mark.parametrize(("folder", "origin"), ORIGINS.items())
def test_they_were_trained_as_the_page_says(folder, origin):
    meta = json.loads((WEIGHTS / folder / "meta.json").read_text())
    assert (meta["counters"]["epoch"], meta["counters"]["env_steps"]) == (20, 160_000)
    assert (meta["recipe"], meta["env_id"], meta["seed"]) == origin
    assert meta["inputs"] == {"statistics": {"agent": [0, 1, 2], "surrounding": [3, 4, 5]}}


@pytest.mark.parametrize("recipe", OF_SAC)
def test_networks_of_sac_cannot_start_from_them(recipe):
    with pytest.raises(UsageError, match=r"--parts actor: .* does not fit"):
        inherited(recipe, "FetchPush-v4", "push")


@pytest.mark.parametrize("folder", TASKS)
def test_what_they_took_is_counted(folder):
    record = inherited("ddpg_music_finetune", TASKS[folder], folder).record
    assert start_line(record).startswith(f"starts from {WEIGHTS / folder}, epoch 20: actor, ")
    assert record["before"]["time/env_steps"] == 160_000
    assert record["before"]["time/elapsed_s"] > 800.0
