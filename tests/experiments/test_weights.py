"""The weights that come with the package fit the recipes that start from them."""

import dataclasses

import pytest

from music_tf import recipes
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.storage.run_paths import find_source
from music_tf.storage.warm_start import start_line
from tests.kit.cases import cases
from tests.kit.warm import try_warm_start

TASKS = {"push": "FetchPush-v4", "pick": "FetchPickAndPlace-v4"}
WHOLE = ["actor", "critic", "targets", "normalizer"]
STARTED = [name for name in recipes.names() if getattr(recipes.resolve(name).start, "recipe", "")]
OF_STATISTICS = [name for name in STARTED if "_prioritized" in name or "_reward" in name]


def inherited(recipe, env_id, folder):
    command = parse_train([recipe, "--env-id", env_id, "--init-from", folder])
    return try_warm_start(command.config, find_source(command.start.path), command.start.parts)


@cases(
    ("recipe", "folder", "parts"),
    *(("ddpg_music_finetune", folder, WHOLE) for folder in TASKS),
    *(("ddpg_music_finetune_her", folder, WHOLE) for folder in TASKS),
    # Of a network that estimates information, with either learner
    *((name, folder, ["statistics"]) for name in OF_STATISTICS for folder in TASKS),
    ("sac_music_finetune", "push_sac", WHOLE),
    ("sac_music_finetune_her", "push_sac", ["actor", "normalizer"]),
    ("sac_music_finetune_her", "pick", ["actor", "normalizer"]),  # made Gaussian
    ("sac_music_prioritized", "push_sac", ["statistics"]),
)
def test_a_recipe_takes_over_its_parts_of_them(recipe, folder, parts):
    assert inherited(recipe, TASKS[folder.removesuffix("_sac")], folder).record["parts"] == parts


@cases(
    ("agent", "env_id", "skills", "parts", "deviation"),
    ("ant", "music_tf/Ant-v0", 5, WHOLE, "softplus"),
    ("hopper", "Hopper-v5", 20, ["actor", "normalizer"], "clip"),
)
def test_agents_with_skills_say_which_options_make_them_act_as_before(
    agent, env_id, skills, parts, deviation
):
    words = ["sac_finetune_skill", "--env-id", env_id, "--init-from", agent]
    words += ["--parts", ",".join(parts)]
    words += ["--agent.hidden-sizes", "300", "300"] if agent == "hopper" else []
    added = "--normalizer.running False --normalizer.clip 1e+06 --normalizer.input-clip 1e+06 "
    added += f"--agent.deviation {deviation}"

    def started(*more):
        command = parse_train([*words, *more])
        config = dataclasses.replace(command.config, skills=skills)  # as the run itself does
        return try_warm_start(config, find_source(command.start.path), command.start.parts)

    with pytest.raises(UsageError, match="act differently") as fault:
        started()
    assert str(fault.value).endswith(f"\nadd: {added}")
    assert started(*added.split()).record["parts"] == parts


@pytest.mark.parametrize("folder", TASKS)
def test_what_they_took_is_counted(folder):
    record = inherited("ddpg_music_finetune", TASKS[folder], folder).record
    assert start_line(record).startswith(f"starts from the agent {folder}: actor, ")
    assert record["before"]["time/env_steps"] == 160_000
    assert record["before"]["time/elapsed_s"] > 300.0
