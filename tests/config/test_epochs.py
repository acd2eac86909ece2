"""Epochs that are collected by steps hold whole episodes, or the user is told what they cut."""

import dataclasses
import itertools

import pytest

from music_tf import recipes
from music_tf.config.epochs import cut_by_epochs, whole_epoch
from music_tf.config.fields import with_fields
from music_tf.config.names import EPISODE_STEPS, WITHOUT_GOALS, episode_steps
from music_tf.errors import UsageError
from tests.kit.cases import cases, every
from tests.kit.releases import EVERY_PRESET, RELEASED_ON

CHEETAH = "HalfCheetah-v5"
BY_TWENTY = with_fields(
    recipes.resolve("sac", "laptop", CHEETAH), {"collect.steps": 20, "cycles": 25}
)


@cases(
    ("steps", "wanted", "length", "expected"),
    (50, 5000, 1000, (50, 100)),  # five episodes already
    (50, 5000, 1600, (50, 96)),  # three of them: 4800 is nearer than 6400
    (20, 500, 1000, (20, 50)),  # never less than one
    (20, 500, 200, (20, 20)),  # two episodes, as near as three
    (50, 1000, 999, (37, 27)),  # 50 divides no multiple of 999 below 49,950
    (1, 1000, 999, (1, 999)),
    (25, 500, 3, (25, 21)),  # 525 steps are 175 episodes
    (7, 7, 1, (7, 1)),
)
def test_an_epoch_of_whole_episodes_is_found_near_the_one_wanted(steps, wanted, length, expected):
    assert whole_epoch(steps, wanted, length) == expected


@every(
    ("length", "steps", "wanted"),
    itertools.product((7, 30, 97, 250, 999), (1, 6, 50), (10, 500, 5000)),
)
def test_such_an_epoch_holds_whole_episodes_whatever_is_asked_for(steps, wanted, length):
    epoch = whole_epoch(steps, wanted, length)
    assert 1 <= epoch.steps <= steps
    assert epoch.steps * epoch.cycles % length == 0
    assert 1 <= epoch.steps * epoch.cycles <= 2 * max(wanted, length)


@cases(
    ("length", "changes", "way_out"),
    (1000, {}, "--cycles 50, or --env.max-episode-steps 500"),
    (999, {}, "--cycles 111 --collect.steps 9, or --env.max-episode-steps 500"),
    # ten steps of the simulator a choice
    (600, {"env.skills": "run", "agent.discount": 0.99}, "--cycles 30, or --env.* 5000"),
)
def test_an_epoch_that_no_episode_survives_is_refused_with_what_fits(length, changes, way_out):
    told = rf"cycles: .* 25 x 20 steps .* cuts off every episode of {length} .*\nnearest: "
    with pytest.raises(UsageError, match=told + way_out):
        cut_by_epochs(with_fields(BY_TWENTY, changes), length)


def test_what_an_epoch_cuts_off_is_said_with_the_way_out_and_nothing_else_is():
    said = cut_by_epochs(BY_TWENTY, 300)
    assert "an epoch has 500 steps of each environment, an episode up to 300" in said
    assert "cut after 200" in said
    assert said.endswith("to cut none: --cycles 30, or --env.max-episode-steps 250")
    for length in (500, 250, 1):
        assert cut_by_epochs(BY_TWENTY, length) == ""
    whole = dataclasses.replace(BY_TWENTY.collect, steps=None)
    assert cut_by_epochs(dataclasses.replace(BY_TWENTY, collect=whole), 1000) == ""
    assert episode_steps("my_package.tasks:Walk-v3") == 1000  # an unknown one
    assert episode_steps("my_package.tasks:Pendulum-v7") == 200  # a version of a known one


OF_EVERY_LENGTH = {steps: env_id for env_id, steps in EPISODE_STEPS.items()}


@pytest.mark.thorough
@every(("name", "preset"), EVERY_PRESET)
def test_no_preset_cuts_an_episode_on_its_own_or_any_other_known_environment(name, preset):
    fitting = RELEASED_ON.get(preset)
    own = recipes.resolve(name, preset, fitting or "").env_id
    for env_id in (own, *(() if fitting else (*WITHOUT_GOALS, *OF_EVERY_LENGTH.values()))):
        config = recipes.resolve(name, preset, env_id)
        length = config.env.max_episode_steps or EPISODE_STEPS[config.env_id]
        if name == "skills_controller":
            length = -(-length // config.env.skill_steps)  # of choices
        assert cut_by_epochs(config, length) == "", env_id


@cases(
    ("name", "preset", "lengths"),
    ("sac_diayn", "qdax", (100, 100, 100, None)),
    ("sac_diayn", "diayn_torch", (None, 1000, None, None)),
    ("sac_diayn", "paper", (None, None, None, None)),
    ("sac_smerl", "paper", (250, 250, 500, None)),
    ("sac_dads_smerl", "qdax", (100, 100, 100, None)),
    ("sac_smerl", "laptop", (None, None, None, None)),
)
def test_presets_cut_episodes_where_originals_do_unless_the_task_ends_before(name, preset, lengths):
    tasks = (CHEETAH, "BipedalWalker-v3", "AntMaze_UMaze-v5", "music_tf/UnitBox-v0")
    found = [recipes.resolve(name, preset, task).env.max_episode_steps for task in tasks]
    assert tuple(found) == lengths
