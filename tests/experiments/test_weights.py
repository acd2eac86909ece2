"""The weights that come with the package fit the recipes that start from them."""

import dataclasses

import numpy as np
import pytest

from music_tf import recipes
from music_tf.errors import UsageError
from music_tf.reading.command import parse_train
from music_tf.storage.loading import load_policy
from music_tf.storage.run_paths import AGENTS, find_source
from music_tf.storage.warm_start import start_line
from tests.kit.cases import cases
from tests.kit.saved_run import save_checkpoint, write_config
from tests.kit.small import trainer_of
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
    assert start_line(record).startswith(f"starts from {AGENTS / folder}, epoch 20: actor, ")
    assert record["before"]["time/env_steps"] == 160_000
    assert record["before"]["time/elapsed_s"] > 300.0


def started_from_pick(folder, words):
    """Returns the policy of a saved run whose actor was that of `pick`, before it has learned."""
    few = ["--workers", "1", "--rollouts", "1", "--replay.capacity", "100"]
    command = parse_train([*words.split(), "--env-id", TASKS["pick"], *few])
    trainer = trainer_of(command.config)
    parts = ("actor", "normalizer")
    trainer.start_from(try_warm_start(command.config, find_source("pick"), parts).arrays)
    write_config(folder, command.config, command.recipe)
    save_checkpoint(folder, trainer)
    return load_policy(folder)


def test_pick_acts_as_before_to_the_last_bit_in_an_agent_of_sac(tmp_path):
    before = load_policy("pick")
    drawn = np.random.default_rng(0)
    observation = drawn.normal(size=(500, 25)).astype(np.float32)
    expected = before.act(observation)
    after = started_from_pick(tmp_path / "alike", "sac_music")
    assert after.snapshot.actor == "gaussian"
    np.testing.assert_array_equal(after.act(observation), expected)
    # The constant input of a run without conditions becomes a part of the bias, in one rounding
    # that does not depend on the learner: the heads are exact.
    condition = drawn.normal(size=(500, 3)).astype(np.float32)
    zero = np.zeros([500, 3], np.float32)
    of_ddpg = "ddpg --goals zero --condition.kind sphere --condition.size 3"
    ways = ["sac_place", "sac_metra", of_ddpg]
    *found, deterministic = (
        started_from_pick(tmp_path / str(number), way).snapshot.act(
            observation, zero, condition, None
        )
        for number, way in enumerate(ways)
    )
    np.testing.assert_allclose(deterministic, expected, atol=5e-5)
    for actions in found:
        np.testing.assert_array_equal(actions, deterministic)
